import type { AgentEvent } from '../../kernel/events.ts'
import { quoted } from '../../kernel/text.ts'
import type { ModelRoute } from '../providers/port.ts'
import type { ToolBox } from '../tools/port.ts'

/** Warns once in a run that its model does not support tools and was called without them. */
export function createToolsWarning({ tools }: Pick<ToolBox, 'tools'>) {
  let hasWarned = false
  return function* ({ provider, model }: ModelRoute): Generator<AgentEvent, void, undefined> {
    if (hasWarned || tools.length === 0 || provider.takesTools?.(model) !== false) return
    hasWarned = true
    yield {
      type: 'warning',
      code: 'tools_left_out',
      message: `${quoted(model)} does not take tools: it is asked without them and can only write`,
      detail: { model, suggestion: 'Choose a model that takes tools to let it read, write and search.' },
    }
  }
}
