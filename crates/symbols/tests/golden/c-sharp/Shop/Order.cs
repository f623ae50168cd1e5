using System;
using System.Collections.Generic;
using static System.Math;
using Lines = System.Collections.Generic.List<Shop.Line>;
using Shop.Stock;

namespace Shop
{
    namespace Model.Parts
    {
        public class Deep { }
    }

    [Serializable]
    public partial class Order<T> : Document, IPriced, IComparable<Order<T>> where T : class
    {
        public const int Limit = 100;
        private readonly int _first, _second = 2;
        public string Name { get; init; } = "";
        public decimal Total => _first;
        public event EventHandler Changed;
        public event EventHandler Closed { add { } remove { } }

        public Order(string id, int count = 1, params object[] rest) : base(id) { }

        ~Order() { }

        public T this[int index, string key] { get => default; set { } }

        public async Task<int> ShipAsync<U>(Warehouse warehouse, CancellationToken token = default)
        {
            int Local(int value) => value;
            var line = new Line(1, "a");
            warehouse?.Reserve(line);
            return await Task.FromResult(Local(Max(1, 2)));
        }

        public static Order<T> operator +(Order<T> left, Order<T> right) => left;
        public static implicit operator int(Order<T> order) => 1;
        int IComparable<Order<T>>.CompareTo(Order<T> other) => 0;
        partial void OnChanged(ref int value, out string why);

        public delegate void Handler(object sender, EventArgs args);

        private enum Mode : byte { Fast, Safe = 2 }

        public struct Size
        {
            public int Width, Height;
        }
    }

    public partial class Order<T>
    {
        partial void OnChanged(ref int value, out string why) => why = "";
    }

    public record Line(int Count, string Name = "none") : Document(Name), IPriced
    {
        public decimal Total { get; } = Count;
    }

    public readonly record struct Point(double X, double Y);
}
