import type { ToolDefinition } from './port.ts'

type Known<T> = { count: number; result: T }

/** Remembers what `make` returns for a list of tools, until the list grows: an MCP server may become ready later. */
export function perToolList<T>(make: (tools: readonly ToolDefinition[]) => T): (tools: readonly ToolDefinition[]) => T {
  const known = new WeakMap<readonly ToolDefinition[], Known<T>>()
  return (tools) => {
    const last = known.get(tools)
    if (last?.count === tools.length) return last.result
    const result = make(tools)
    known.set(tools, { count: tools.length, result })
    return result
  }
}
