<?php

declare(strict_types=1);

namespace App\Model;

use App\Pricing\{Price, Discount as Rebate};
use App\Contracts\Priced;
use function App\Support\format;
use const App\Support\LIMIT;

require_once __DIR__ . '/../helpers.php';

#[Entity(table: 'orders')]
abstract class Order extends Document implements Priced, \Countable
{
    use Timestamps, Loggable {
        Timestamps::touch insteadof Loggable;
        Loggable::touch as protected log;
    }

    public const MAX = 10, MIN = 1;
    private static ?self $instance = null;
    protected array $lines = [], $notes;
    public string $name { get => strtoupper($this->name); }

    public function __construct(
        private readonly int $id,
        protected ?Customer $customer = null,
        string ...$tags,
    ) {
        parent::__construct($id);
    }

    public static function create(int $id, array &$options = []): static
    {
        $order = new static($id);
        $order?->save();
        return Price::wrap($order);
    }

    abstract public function total(): Price|int;

    final protected function save(): void
    {
        $callback = fn (int $x): int => format($x);
        $anonymous = new class extends Rebate {
            public function hidden() {}
        };
    }
}

interface Describes extends Priced, \Stringable
{
    const VERSION = 2;
    public function describe(bool $long = false): string;
}

trait Timestamps
{
    private ?int $touched;
    public function touch(): void { $this->touched = time(); }
}

enum Status: string implements Describes
{
    case Open = 'open';
    case Closed = 'closed';
    const DEFAULT = self::Open;

    public function describe(bool $long = false): string { return $this->value; }
    public static function parse(string $word): self { return self::from($word); }
}
