import type { JsonObject } from '../../kernel/events.ts'
import { truncate } from '../../kernel/text.ts'
import { fail, type Plan, type PlanStep, succeed, type Tool, type ToolOutcome } from './port.ts'

/**
 * Creates `ExitPlanMode` (D5.4). Permission to call it approves the plan. With `auto_queue_plan` the approved plan is queued and
 * the run ends; otherwise the model carries it out. `problemWith` describes what is wrong with a plan's steps.
 */
export function createExitPlanTool(problemWith: (plan: Plan) => string | undefined): Tool {
  return {
    name: 'ExitPlanMode',
    description: 'Shows the plan to the user for approval. Do not carry out any of it before it is approved.',
    inputSchema: PLAN_SCHEMA,
    defaultPolicy: 'allow',
    alwaysAsks: true,
    endsPlanMode: true,
    problemWith: (input) => problemWith(planOf(input)),
    describe: (input) => `Approve this plan:\n${outline(planOf(input))}`,
    async run(input, { queuePlan }): Promise<ToolOutcome> {
      const plan = planOf(input)
      if (!queuePlan) return succeed(`The plan is approved. Carry it out now:\n${outline(plan)}`)
      try {
        const queued = plan.steps.length > 0 ? await queuePlan(plan) : { note: 'the plan has no steps' }
        const output =
          'plan_id' in queued ? `The plan is queued as ${queued.plan_id}.` : `Nothing was queued: ${queued.note}`
        return { output, isError: false, ending: { type: 'plan_queued', ...queued } }
      } catch {
        return fail('The plan is approved, but could not be queued at the moment. Try ExitPlanMode again.')
      }
    },
  }
}

const PLAN_SCHEMA: JsonObject = {
  type: 'object',
  properties: {
    title: { type: 'string', maxLength: 200 },
    steps: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          id: { type: 'string', minLength: 1, maxLength: 128 },
          prompt: { type: 'string', minLength: 1, maxLength: 100_000, description: 'What the step does.' },
          title: { type: 'string', maxLength: 200 },
          depends_on: {
            type: 'array',
            maxItems: 200,
            items: { type: 'string' },
            description: 'Ids of steps that come first.',
          },
          writes: {
            type: 'array',
            maxItems: 200,
            items: { type: 'string' },
            description: 'Files that the step writes.',
          },
          idempotent: { type: 'boolean', description: 'May it be run a second time?' },
        },
        required: ['id', 'prompt'],
      },
    },
    parallel: { type: 'boolean', description: 'May steps that do not depend on each other run at the same time?' },
  },
  required: ['steps'],
}

const planOf = (input: JsonObject) => input as unknown as Plan

function outline({ title, steps }: Plan): string {
  const items = steps.map((step, i) => `${i + 1}. ${nameOf(step)}${afterOf(step)}`)
  return [...(title ? [title] : []), ...items].join('\n')
}

const nameOf = ({ title, prompt }: PlanStep) => title ?? truncate(prompt, 200)

const afterOf = ({ depends_on: after = [] }: PlanStep) => (after.length > 0 ? ` (after ${after.join(', ')})` : '')
