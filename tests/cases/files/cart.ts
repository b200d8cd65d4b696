interface Line {
  name: string;
  price: number;
}

export class Cart {
  private readonly lines: Line[] = [];

  add(line: Line): void {
    this.lines.push(line);
  }

  total(): number {
    return this.lines.reduce((sum, line) => sum + line.price, 0);
  }
}
