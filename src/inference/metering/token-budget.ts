import { ApiError } from '../../shared/errors.ts'
import type { Job } from '../../engines/job.ts'

/** The quantities that a budget is compared with. */
type Charge = Pick<Job, 'model' | 'deployment' | 'cost' | 'maxTokens'>

/** The refusal of a request that needs more tokens than its lane admits at once: in its tier, `most`. */
export function tokenBudgetExceeded(
  { model, deployment, cost, maxTokens }: Charge,
  most = deployment.limits.tokenBudget,
): ApiError {
  const [parts, advice] =
    maxTokens > 0
      ? [' (input and max_tokens)', 'Lower max_tokens or shorten the input.']
      : ['', 'Ask for less at a time.']
  return new ApiError(
    'token_budget_exceeded',
    `The request needs about ${cost} tokens${parts}, more than the ${most} that ${model.id} admits at once. ${advice}`,
    maxTokens > 0 ? { param: 'max_tokens' } : {},
  )
}

/** Refuses a request early that would be too large. Admission would refuse it later, after more work. */
export function requireBudget(charge: Charge): void {
  if (charge.cost > charge.deployment.limits.tokenBudget) throw tokenBudgetExceeded(charge)
}
