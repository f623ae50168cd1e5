defmodule Shop.Order do
  @moduledoc "An order."
  use GenServer
  import Shop.Stock, only: [reserve: 1]
  alias Shop.{Line, Warehouse}
  alias Shop.Stock, as: Store
  require Logger

  @behaviour Shop.Priced
  @limit 100
  @type t :: %__MODULE__{id: integer, lines: [Line.t()]}
  @typep secret :: atom

  defstruct [:id, lines: [], open: true]

  defguard is_open(order) when order.open

  @spec ship(t(), keyword()) :: {:ok, t()} | :error
  def ship(order, options \\ [])
  def ship(%__MODULE__{} = order, options) when is_open(order) do
    order |> Store.reserve() |> log(options)
  end
  def ship(_, _), do: :error

  defp log(order, [level: level]) do
    Logger.info(inspect(level))
    order
  end

  def a + b, do: Line.add(a, b)

  defmacro traced(name, do: block) do
    quote do: unquote(block)
  end

  defdelegate count(order), to: Shop.Line
  def valid?, do: true

  defmodule Line do
    def add(a, b), do: {a, b}
  end
end

defprotocol Shop.Priced do
  @callback total(term) :: integer
  def total(value)
end

defimpl Shop.Priced, for: Shop.Order do
  def total(order), do: length(order.lines)
end

defmodule Shop.Failure do
  defexception message: "failed", code: 1
end
