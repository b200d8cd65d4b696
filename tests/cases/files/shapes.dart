import 'dart:math';

/// A shape with an area.
abstract class Shape {
  const Shape(this.name);
  final String name;
  double get area;

  @override
  String toString() => '$name of ${area.toStringAsFixed(2)} m\u00b2 (${area > 1 ? "large" : "small"})';
}

class Circle extends Shape {
  const Circle(this.radius) : super('circle');
  final double radius;

  @override
  double get area => pi * radius * radius;
}

void main(List<String> arguments) {
  final shapes = <Shape>[const Circle(1), for (final text in arguments) Circle(double.parse(text))];
  final areas = {for (final shape in shapes) shape.name: shape.area};
  print(r'areas: $' '''${areas.length}
done''');
}
