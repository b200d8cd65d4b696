import Foundation

/// A stack of values.
struct Stack<Value: CustomStringConvertible> {
    private var values: [Value] = []

    mutating func push(_ value: Value) { values.append(value) }

    mutating func pop() -> Value? {
        guard !values.isEmpty else { return nil }
        return values.removeLast()
    }

    var description: String {
        "\(values.count) values: \(values.map { "<\($0)>" }.joined(separator: ", "))"
    }
}

let pattern = #"\d+ ("one")"#
let help = """
    usage: stack "value"
    """
var stack = Stack<Int>()
for number in 1...3 where number != 2 {
    stack.push(number) /* odd ones ( */
}
