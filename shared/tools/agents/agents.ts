import type { JsonObject } from '../../events.ts'
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
  description: 'All it needs to know: it sees nothing else.',
}
const DESCRIPTION = { type: 'string', minLength: 1, maxLength: 200, description: 'The task in a few words.' }
const MAX_TEAM = 8

/** `Agent` and `Team` (D5.3). */
export const createAgentTools = (): Tool[] => [agentTool(), teamTool()]

function agentTool(): Tool {
  return {
    name: 'Agent',
    description: 'Gives one task to a sub-agent with a fresh context of its own, and returns its final answer.',
    inputSchema: {
      type: 'object',
      properties: {
        description: DESCRIPTION,
        prompt: PROMPT,
        tools: {
          type: 'array',
          maxItems: 64,
          items: { type: 'string' },
          description: 'The tools it may use; all when left out.',
        },
      },
      required: ['description', 'prompt'],
    },
    defaultPolicy: 'allow',
    describe: (input) => `Start a sub-agent: ${String(input['description'])}`,
    run: (input, context) => runAgent(input as AgentTask, context),
  }
}

/** Runs one sub-agent; what it says last is what the tool returns. */
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
    inputSchema: {
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
    },
    defaultPolicy: 'allow',
    problemWith: (input) => {
      const { length } = tasksOf(input)
      return length > MAX_TEAM
        ? `A Team has at most ${MAX_TEAM} agents, not ${length}: split the work into several Teams.`
        : undefined
    },
    describe: (input) =>
      `Start ${tasksOf(input).length} sub-agents: ${tasksOf(input)
        .map(({ description }) => description)
        .join('; ')}`,
    async run(input, { agents }) {
      if (agents.depth > 0)
        return fail('A sub-agent cannot start a Team: use Agent, or do the tasks one after another.')
      const tasks = tasksOf(input)
      const refusal = agents.refusal(tasks)
      if (refusal !== undefined) return fail(refusal)
      const reports = await Promise.all(tasks.map((task) => agents.run(task)))
      return reportOf(tasks, reports)
    },
  }
}

const tasksOf = (input: JsonObject) => (input as { agents: AgentTask[] }).agents

/** Every result under its description; an error only when all have failed. */
function reportOf(tasks: readonly AgentTask[], reports: readonly AgentReport[]): ToolOutcome {
  const sections = reports.map(
    (report, i) => `## ${i + 1}. ${tasks[i]?.description} (${report.status})\n${textOf(report)}`,
  )
  const failed = reports.flatMap(({ status }, i) => (status === 'completed' ? [] : [tasks[i]?.description]))
  const head = failed.length > 0 ? [`${failed.length} of ${reports.length} did not succeed: ${failed.join(', ')}.`] : []
  return { output: [...head, ...sections].join('\n\n'), isError: failed.length === reports.length }
}

function textOf({ status, result, error }: AgentReport): string {
  if (status === 'completed') return result || 'It ended without saying anything.'
  const said = result && `\nIts last words: ${result}`
  return `The sub-agent ${status === 'cancelled' ? 'was cancelled' : 'failed'}: ${error ?? 'no reason was given'}.${said}`
}
