variable "names" {
  type    = list(string)
  default = ["a", "b"]
}

locals {
  tags = { for name in var.names : name => upper("${name}-${var.names[0]}") }
}

# One network for each name.
resource "network" "main" {
  for_each = toset(var.names)
  name     = each.value
  script   = <<-EOT
    echo "started (
  EOT

  rule {
    ports = [80, 443]
    open  = length(local.tags) > 1 ? true : false
  }
}
