# The idempotency table, and the permissions of a function on it: what `docs/templates/minimal.yaml` has.

terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.0"
    }
  }
}

variable "name" {
  description = "The name of the table, and the application that owns its records."
  type        = string
}

variable "role_name" {
  description = "The role of the function."
  type        = string
}

variable "function_arn" {
  description = "The function."
  type        = string
}

variable "queue_arn" {
  description = "The queue that invokes the function. Its visibility timeout is six times the function's timeout."
  type        = string
}

resource "aws_dynamodb_table" "idempotency" {
  name         = var.name
  billing_mode = "PAY_PER_REQUEST"
  hash_key     = "id"

  attribute {
    name = "id"
    type = "S"
  }

  # With another name the table only grows.
  ttl {
    attribute_name = "expiration"
    enabled        = true
  }

  server_side_encryption {
    enabled = true
  }

  # A new, empty table does not know what was done.
  lifecycle {
    prevent_destroy = true
  }
}

data "aws_iam_policy_document" "idempotency" {
  statement {
    sid = "Idempotency"
    actions = [
      "dynamodb:GetItem",
      "dynamodb:BatchGetItem",
      "dynamodb:PutItem",
      "dynamodb:UpdateItem",
      "dynamodb:DeleteItem",
      # Several writes are sent as PartiQL statements, which have permissions of their own.
      "dynamodb:PartiQLInsert",
      "dynamodb:PartiQLUpdate",
      "dynamodb:PartiQLDelete",
    ]
    resources = [aws_dynamodb_table.idempotency.arn]
  }

  statement {
    sid       = "Poll"
    actions   = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"]
    resources = [var.queue_arn]
  }
}

resource "aws_iam_role_policy" "idempotency" {
  name   = "idempotency"
  role   = var.role_name
  policy = data.aws_iam_policy_document.idempotency.json
}

resource "aws_lambda_event_source_mapping" "queue" {
  event_source_arn = var.queue_arn
  function_name    = var.function_arn
  batch_size       = 10
  # Without this line, Lambda ignores the response and deletes failed messages.
  function_response_types = ["ReportBatchItemFailures"]
  depends_on              = [aws_iam_role_policy.idempotency]
}

output "environment" {
  description = "What the function needs in its environment."
  value = {
    IDEMPOTENCY_TABLE       = aws_dynamodb_table.idempotency.name
    IDEMPOTENCY_APPLICATION = var.name
  }
}
