/** A tool that the client has allowed for the rest of a session; `remembered_at` is an ISO 8601 timestamp. */
export type RememberedTool = { tool_name: string; remembered_at: string }

/** The tools that a session's client has allowed for the rest of the session (`"remember": "session"`, D4.12). */
export class RememberedTools {
  /** `undefined` as long as none was remembered, as in most runs. */
  #byName: Map<string, RememberedTool> | undefined

  constructor(entries: readonly RememberedTool[] = []) {
    if (entries.length > 0) this.restore(entries)
  }

  get entries(): readonly RememberedTool[] {
    return [...(this.#byName?.values() ?? [])]
  }

  has(toolName: string): boolean {
    return this.#byName?.has(toolName) ?? false
  }

  /** Forgets one tool, or without a name all. Returns how many were forgotten. */
  forget(toolName?: string): number {
    const names = toolName === undefined ? [...(this.#byName?.keys() ?? [])] : [toolName]
    return names.filter((name) => this.#byName?.delete(name)).length
  }

  /** Remembers these tools again, and no others. */
  restore(entries: readonly RememberedTool[]): void {
    this.#byName = new Map(entries.map((entry) => [entry.tool_name, entry]))
  }

  add(toolName: string): void {
    if (this.has(toolName)) return
    this.#byName ??= new Map()
    this.#byName.set(toolName, { tool_name: toolName, remembered_at: new Date().toISOString() })
  }
}
