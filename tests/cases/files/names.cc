#include <map>
#include <string>
#include <vector>

namespace names {

template <typename T>
std::vector<T> without(const std::vector<T> &items, const T &item) {
    std::vector<T> kept;
    for (const auto &one : items) {
        if (one != item) kept.push_back(one);
    }
    return kept;
}

const char *PAGE = R"(<a href="names(">
)";

class Counter {
  public:
    void add(const std::string &name) { counts[name] += 1'000; }
    int of(const std::string &name) const {
        auto found = counts.find(name);
        return found == counts.end() ? 0 : found->second;
    }

  private:
    std::map<std::string, int> counts;  // by name
};

}  // namespace names
