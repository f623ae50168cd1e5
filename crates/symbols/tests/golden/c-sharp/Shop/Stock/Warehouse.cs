namespace Shop.Stock;

public interface IPriced
{
    decimal Total { get; }
    string Label(bool verbose) => $"{Total}";
}

public abstract class Document(string id)
{
    protected string Id => id;
}

public sealed class Warehouse
{
#if DEBUG
    public void Trace() { }
#endif
    public void Reserve(Line line) { line.Describe().ToUpper(); }
}

public static class LineExtensions
{
    public static string Describe(this Line line, string prefix = "") => prefix + line.Name;
}
