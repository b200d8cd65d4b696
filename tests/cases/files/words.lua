-- Counts words.
local M = { version = "1.0", most = 10 }

--[[ A word is a run of letters
     or digits ( ]]
function M.count(text)
  local counts = {}
  for word in text:gmatch("[%w']+") do
    counts[word] = (counts[word] or 0) + 1
  end
  return counts
end

function M.sorted(counts)
  local words = {}
  for word, count in pairs(counts) do
    words[#words + 1] = { word = word, count = count }
  end
  table.sort(words, function(a, b) return a.count > b.count end)
  return words
end

local help = [==[
usage: lua words.lua [file]
]==]

return M
