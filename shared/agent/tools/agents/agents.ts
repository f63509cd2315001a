import type { JsonObject } from '../../../kernel/events.ts'
import { inTags } from '../../../kernel/prompt-data.ts'
import {
  type AgentReport,
  type AgentTask,
  fail,
  succeed,
  type Tool,
  type ToolContext,
  type ToolOutcome,
} from '../port.ts'

const PROMPT = {
  type: 'string',
  minLength: 1,
  maxLength: 100_000,
  description: 'Everything it needs to know: it sees nothing else.',
}
const DESCRIPTION = { type: 'string', minLength: 1, maxLength: 200, description: 'The task in a few words.' }
const MAX_TEAM = 8

/** Creates `Agent` and `Team` (D5.3). */
export const createAgentTools = (): Tool[] => [agentTool(), teamTool()]

function agentTool(): Tool {
  return {
    name: 'Agent',
    description: 'Gives one task to a sub-agent with a fresh context of its own, and returns its final answer.',
    inputSchema: AGENT_SCHEMA,
    defaultPolicy: 'allow',
    isReadOnly: true,
    describe: (input) => `Start a sub-agent: ${String(input['description'])}`,
    run: (input, context) => runAgent(input as AgentTask, context),
  }
}

const AGENT_SCHEMA: JsonObject = {
  type: 'object',
  properties: {
    description: DESCRIPTION,
    prompt: PROMPT,
    tools: {
      type: 'array',
      maxItems: 64,
      items: { type: 'string' },
      description: 'The tools it may use. Default: all.',
    },
  },
  required: ['description', 'prompt'],
}

/** Runs one sub-agent and returns its last message. */
export async function runAgent(task: AgentTask, { agents }: ToolContext): Promise<ToolOutcome> {
  const refusal = agents.refusal([task])
  if (refusal !== undefined) return fail(refusal)
  const report = await agents.run(task)
  return report.status === 'completed' ? succeed(textOf(report)) : fail(textOf(report))
}

function teamTool(): Tool {
  return {
    name: 'Team',
    description: `Gives up to ${MAX_TEAM} independent tasks to as many sub-agents, which work at the same time, and returns all their answers.`,
    inputSchema: TEAM_SCHEMA,
    defaultPolicy: 'allow',
    isReadOnly: true,
    problemWith: (input) => {
      const { length } = tasksOf(input)
      return length > MAX_TEAM
        ? `A Team has at most ${MAX_TEAM} agents, not ${length}: split the work into several Teams.`
        : undefined
    },
    describe(input) {
      const tasks = tasksOf(input)
      return `Start ${tasks.length} sub-agents: ${tasks.map(({ description }) => description).join('; ')}`
    },
    run: (input, context) => runTeam(tasksOf(input), context),
  }
}

const TEAM_SCHEMA: JsonObject = {
  type: 'object',
  properties: {
    agents: {
      type: 'array',
      minItems: 1,
      items: {
        type: 'object',
        properties: { description: DESCRIPTION, prompt: PROMPT },
        required: ['description', 'prompt'],
      },
    },
  },
  required: ['agents'],
}

const tasksOf = (input: JsonObject) => (input as { agents: AgentTask[] }).agents

async function runTeam(tasks: readonly AgentTask[], { agents }: ToolContext): Promise<ToolOutcome> {
  if (agents.depth > 0) return fail('A sub-agent cannot start a Team: use Agent, or do the tasks one after another.')
  const refusal = agents.refusal(tasks)
  if (refusal !== undefined) return fail(refusal)
  return toOutcome(tasks, await Promise.all(tasks.map((task) => agents.run(task))))
}

/**
 * Puts each result under its task's description, between tags, so that none can look like another one. The outcome is
 * an error only when all tasks failed.
 */
function toOutcome(tasks: readonly AgentTask[], reports: readonly AgentReport[]): ToolOutcome {
  const sections = reports.map(
    (report, i) => `## ${i + 1}. ${tasks[i]?.description} (${report.status})\n${inTags('result', textOf(report))}`,
  )
  const failed = reports.flatMap(({ status }, i) => (status === 'completed' ? [] : [tasks[i]?.description]))
  const summary =
    failed.length > 0 ? [`${failed.length} of ${reports.length} did not succeed: ${failed.join(', ')}.`] : []
  return { output: [...summary, ...sections].join('\n\n'), isError: failed.length === reports.length }
}

function textOf({ status, result, error }: AgentReport): string {
  if (status === 'completed') return result || 'It ended without an answer.'
  const lastMessage = result && `\nIts last message: ${result}`
  return `The sub-agent ${status === 'cancelled' ? 'was cancelled' : 'failed'}: ${error ?? 'no reason was given'}.${lastMessage}`
}
