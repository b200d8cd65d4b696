# An order of several lines.
class Order
  attr_reader :lines

  def initialize(lines = [])
    @lines = lines
  end

  def total
    @lines.sum { |line| line.price * line.count }
  end

  def to_s
    "#{@lines.size} lines: #{total}"
  end
end
