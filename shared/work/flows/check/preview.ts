import type { JsonObject } from '../../../kernel/events.ts'
import { isJsonObject } from '../../../kernel/json.ts'
import { truncate } from '../../../kernel/text.ts'
import { sampleOf } from '../../../platform/schemas/samples/sample.ts'
import { mainPrompts, type Prompts, subAgentPrompts } from '../execute/agent.ts'
import { MAIN_AGENT } from '../execute/outcome.ts'
import type { FlowDefinition, FlowTemplates, TemplateValues } from '../port.ts'

/** The prompts of each agent that a run with this input would render. */
export type PromptPreview = { input: JsonObject; agents: ({ agent: string } & Prompts)[] }

/** No value is found that fits the schema at `param`. */
export type SampleWarning = { code: 'no_sample'; message: string; param: string }

type PreviewedFlow = { name: string; definition: FlowDefinition; templates: FlowTemplates; memory: string }

/** The most characters of a prompt that are shown. */
const MAX_CHARS = 20_000
const CUT = '\n[cut]'

/**
 * Renders the prompts with this input, or a sample made from `input_schema`, and with sample outputs of the sub-agents, made from
 * their schemas. Without an input that fits there is no preview.
 */
export function previewPrompts(
  { name, definition, templates, memory }: PreviewedFlow,
  given: JsonObject | undefined,
): { preview: PromptPreview | null; warnings: SampleWarning[] } {
  const warnings: SampleWarning[] = []
  const input = given ?? sampleAt(definition.input_schema, '/input_schema', warnings)
  if (!isJsonObject(input)) return { preview: null, warnings }
  const agents = agentPrompts({ name, definition, templates, memory }, input, warnings)
  return { preview: { input, agents: agents.map(shown) }, warnings }
}

/** The prompts of each agent in full, the sub-agents' first. */
export function agentPrompts(
  { name, definition, templates, memory }: PreviewedFlow,
  input: JsonObject,
  warnings: SampleWarning[] = [],
): PromptPreview['agents'] {
  const outputs = definition.sub_agents.map(
    (agent, i) => [agent.name, sampleAt(agent.output_schema, `/sub_agents/${i}/output_schema`, warnings)] as const,
  )
  const values: TemplateValues = { input, sub_outputs: {}, memory }
  const main = mainPrompts({ name, definition, templates }, { ...values, sub_outputs: Object.fromEntries(outputs) })
  return [
    ...definition.sub_agents.map((agent) => ({ agent: agent.name, ...subAgentPrompts(agent, templates, values) })),
    { agent: MAIN_AGENT, ...main },
  ]
}

function sampleAt(schema: JsonObject, at: string, warnings: SampleWarning[]): unknown {
  const sample = sampleOf(schema)
  if ('value' in sample) return sample.value
  const param = `${at}${sample.path}`
  const instead = at === '/input_schema' ? 'send input to see the prompts' : 'the prompts show nothing in its place'
  warnings.push({ code: 'no_sample', message: `no sample is made for ${param}: ${sample.problem}; ${instead}`, param })
  return undefined
}

const shown = ({ agent, system, user }: PromptPreview['agents'][number]) => ({
  agent,
  system: truncate(system, MAX_CHARS, CUT),
  user: truncate(user, MAX_CHARS, CUT),
})
