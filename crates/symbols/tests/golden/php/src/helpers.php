<?php

namespace App\Support {
    const LIMIT = 5;
    define('APP_MODE', 'test');

    function format(int $value, string $unit = 'EUR', ...$rest): string
    {
        return sprintf('%d %s', $value, $unit);
    }

    if (!function_exists('tap')) {
        function tap($value, callable $then) { return $then($value); }
    }
}

namespace App {
    final readonly class Kernel { public function run(): never { exit(Support\format(1)); } }
}
?>
<p>Text</p>
