import java.util.ArrayList;
import java.util.List;

class Stack<T> {
    private final List<T> values = new ArrayList<>();

    void push(T value) {
        values.add(value);
    }

    T pop() {
        return values.remove(values.size() - 1);
    }
}
