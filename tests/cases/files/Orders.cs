using System;
using System.Collections.Generic;
using System.Linq;

namespace Shop
{
    /// <summary>An order of several lines.</summary>
    public class Order
    {
        public List<(string Name, decimal Price)> Lines { get; } = new();

        public decimal Total => Lines.Sum(line => line.Price);

        public override string ToString()
        {
            var first = Lines.FirstOrDefault();
            return $"{Lines.Count} lines, first \"{first.Name}\": {Total:0.00}";
        }

        public static Order Read(string text)
        {
            var order = new Order();
            foreach (var line in text.Split('\n'))
            {
                var parts = line.Split(new[] { ';' }, 2);
                if (parts.Length == 2)
                {
                    order.Lines.Add((parts[0], decimal.Parse(parts[1])));
                }
            }
            return order;
        }

        private const string Path = @"C:\orders\";
    }
}
