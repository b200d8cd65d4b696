<?php
declare(strict_types=1);

namespace App;

// A form with fields.
final class Form
{
    private array $fields = ['name' => '', "mail's" => null];

    public function __construct(private string $title, string ...$names)
    {
        foreach ($names as $name) {
            $this->fields[$name] ??= "{$this->title}: $name";
        }
    }

    #[Pure]
    public function filled(): array
    {
        return array_filter($this->fields, fn($value) => $value !== null && $value !== '');
    }
}

$form = new Form('Order', 'street');
?>
<h1><?= htmlspecialchars("It's") ?></h1>
<?php if ($form->filled()): ?>
  <p>(filled</p>
<?php endif; ?>
