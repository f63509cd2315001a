import { withSchema } from '../../../agent/engine/answers/typed-answer.ts'
import type { FlowDefinition, FlowTemplates, SubAgentDefinition, TemplateValues } from '../port.ts'

/** The texts with which an agent starts. */
export type Prompts = { system: string; user: string }

type MainAgent = { name: string; definition: FlowDefinition; templates: FlowTemplates }

/**
 * The prompts of the main agent (api.md "Flow definition"): the flow's templates. Without a template for the user's message it is
 * the JSON envelope of `input` and `sub_outputs`; without a system template, the system prompt names the flow and contains the memory.
 */
export function mainPrompts({ name, definition, templates }: MainAgent, values: TemplateValues): Prompts {
  const { system, user } = templates
  const task = system?.render(values) ?? defaultTask(name, { hasEnvelope: user === undefined, memory: values.memory })
  const { input, sub_outputs } = values
  return {
    system: withSchema(task, definition.output_schema),
    user: user?.render(values) ?? JSON.stringify({ input, sub_outputs }),
  }
}

/** The prompts of a sub-agent: its own one as the system prompt, and the flow's input. */
export function subAgentPrompts(
  { name, output_schema }: SubAgentDefinition,
  { subAgents }: FlowTemplates,
  values: TemplateValues,
): Prompts {
  const task = subAgents.get(name)?.render(values) ?? ''
  return { system: withSchema(task, output_schema), user: JSON.stringify({ input: values.input }) }
}

function defaultTask(name: string, { hasEnvelope, memory }: { hasEnvelope: boolean; memory: string }): string {
  const task = `You carry out the flow "${name}": you produce its output from its input.`
  const envelope = hasEnvelope
    ? " The user's message is a JSON object: `input` is the input of the flow, `sub_outputs` holds the outputs of its sub-agents by name."
    : ''
  return memory === '' ? task + envelope : `${task}${envelope}\n\n${memory}`
}
