import { fail, type Tool, type ToolBox } from './port.ts'

/** The same tools, but a call that may change something runs only after `beforeAction` has resolved, and not at all if it rejects. */
export function recordingActions(toolBox: ToolBox, beforeAction: () => Promise<void>): ToolBox {
  return {
    get tools() {
      return toolBox.tools
    },
    ready: toolBox.ready,
    servers: () => toolBox.servers?.() ?? [],
    find(name) {
      const tool = toolBox.find(name)
      return tool && !tool.isReadOnly ? recorded(tool, beforeAction) : tool
    },
    policyOf: (...call) => toolBox.policyOf(...call),
    problemWith: (name, input) => toolBox.problemWith(name, input),
  }
}

const recorded = (tool: Tool, beforeAction: () => Promise<void>): Tool => ({
  ...tool,
  async run(input, context) {
    try {
      await beforeAction()
    } catch {
      return fail(`${tool.name} was not run: it could not be recorded first. Try again.`)
    }
    return tool.run(input, context)
  },
})
