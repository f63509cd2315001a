import type { Client } from '@modelcontextprotocol/client'
import { withDeadline } from '../../../kernel/async/deadline.ts'
import type { JsonObject } from '../../../kernel/events.ts'
import { isJsonObject } from '../../../kernel/json.ts'
import { truncate } from '../../../kernel/text.ts'
import type { ToolHints } from '../port.ts'
import { MAX_TOOLS, withRest } from '../usable-tools.ts'
import { isUnknownSession } from './call.ts'
import type { McpConnection } from './connection.ts'
import { fitSchema } from './fit-schema.ts'

/** A tool as its server describes it. */
export type ServerTool = {
  name: string
  title: string | undefined
  description: string | undefined
  inputSchema: JsonObject
  /** The input schema as the server has sent it. */
  ownSchema: unknown
  /** The server's own hints, which may be wrong. */
  hints: ToolHints
}

export type ServerList = {
  tools: ServerTool[]
  /** Sentences for the log. */
  problems: string[]
  /** The server's instructions for the use of its tools. */
  instructions: string | undefined
}

type Page = { tools: readonly unknown[]; nextCursor: string | undefined }

const MAX_PAGES = 64
const MAX_LIST_CHARS = 1024 * 1024
const MAX_NAME_CHARS = 1_000
const MAX_DESCRIPTION_CHARS = 4_000
const MAX_TITLE_CHARS = 200
const MAX_INSTRUCTIONS_CHARS = 4_000

const cutLine = (server: string): string =>
  `The instructions of the MCP server ${server} are cut at ${MAX_INSTRUCTIONS_CHARS} characters.`

const MAX_SCHEMA_CHARS = 64 * 1024
const MAX_SHOWN_CHARS = 100

/**
 * Lists the usable tools of one server, within the time in which it may start. A malformed tool, one with a schema that is too large
 * and one that runs only as a task are left out. If the server has lost its session, a new one is opened. The list is read only as far as one
 * server's tools may go. `problems` has a sentence for each of these.
 */
export async function listTools(connection: McpConnection): Promise<ServerList> {
  const { startTimeoutMs, name } = connection
  const late = () => new Error(`it did not list its tools within ${startTimeoutMs} ms`)
  for (let isLastTry = false; ; isLastTry = true) {
    const shared = await connection.client()
    const { hasSession } = shared
    const list = new ToolList(name)
    try {
      const reading = shared.run((client) => readPages(client, list))
      await withDeadline(reading, startTimeoutMs, late)
      const { instructions = '' } = shared
      const isCut = instructions.length > MAX_INSTRUCTIONS_CHARS
      return {
        tools: [...list.tools.values()],
        problems: [...list.problems(), ...(isCut ? [cutLine(name)] : [])],
        instructions: textOf(instructions, MAX_INSTRUCTIONS_CHARS),
      }
    } catch (cause) {
      if (isLastTry || !hasSession || !isUnknownSession(cause)) throw cause
      await connection.retire(shared)
    }
  }
}

async function readPages(client: Client, list: ToolList): Promise<void> {
  if (!client.getServerCapabilities()?.tools) return
  let cursor: string | undefined
  const seen = new Set<string>()
  for (let page = 0; page < MAX_PAGES; page++) {
    const read = await readPage(client, cursor).catch((cause: unknown) => {
      if (page === 0) throw cause
    })
    if (!read) return list.end(`page ${page + 1} of its list could not be read`)
    for (const tool of read.tools) if (!list.add(tool)) return
    cursor = read.nextCursor
    if (cursor === undefined) return
    if (seen.has(cursor)) return list.end('its list names a page for the second time')
    seen.add(cursor)
  }
  list.end(`its list has more than ${MAX_PAGES} pages`)
}

/** The package's own method is not used: it refuses the whole list when one tool is malformed. */
const readPage = (client: Client, cursor: string | undefined): Promise<Page> =>
  client.request({ method: 'tools/list', params: cursor === undefined ? {} : { cursor } }, ANY_PAGE)

/** The tools of a server's list. Malformed entries count as well, so that an endless list is not read. */
class ToolList {
  readonly #server: string
  readonly tools = new Map<string, ServerTool>()
  readonly #malformed: string[] = []
  readonly #notes: string[] = []
  #entries = 0
  #chars = 0
  #isCut = false
  #end: string | undefined

  constructor(server: string) {
    this.#server = server
  }

  /** Returns `false` when there is no room for the entry, nor for those that follow. */
  add(entry: unknown): boolean {
    const read = readTool(entry)
    this.#chars += 'tool' in read ? read.chars : 0
    this.#isCut = this.#entries === MAX_TOOLS || this.#chars > MAX_LIST_CHARS
    if (this.#isCut) return false
    this.#entries += 1
    const tool = `The tool ${shownName(entry)} of the MCP server ${this.#server}`
    if ('problem' in read) this.#malformed.push(`${tool} is left out: ${read.problem}.`)
    else this.tools.set(read.tool.name, read.tool)
    if ('note' in read) this.#notes.push(`${tool} is offered, but ${read.note}.`)
    return true
  }

  /** Stops reading, for this reason. */
  end(reason: string): void {
    this.#end = reason
  }

  problems(): string[] {
    const server = `the MCP server ${this.#server}`
    const room = `${MAX_TOOLS} tools or ${MAX_LIST_CHARS / 1024} KB`
    return [
      ...withRest(this.#malformed, (count) => `${count} more tools of ${server} are left out for such reasons.`),
      ...withRest(this.#notes, (count) => `${count} more descriptions of ${server} are cut.`),
      ...(this.#isCut ? [`The list of ${server} is longer than ${room}: the tools behind that are left out.`] : []),
      ...(this.#end === undefined
        ? []
        : [`The tools of ${server} behind those that were listed are left out: ${this.#end}.`]),
    ]
  }
}

/** The schema that the package needs: it accepts every result, and keeps the fields of a page. */
const ANY_PAGE = {
  '~standard': {
    version: 1,
    vendor: 'agent-engine',
    types: undefined as { input: unknown; output: Page } | undefined,
    validate: (result: unknown): { value: Page } => {
      const { tools, nextCursor } = isJsonObject(result) ? result : {}
      return {
        value: {
          tools: Array.isArray(tools) ? tools : [],
          nextCursor: typeof nextCursor === 'string' ? nextCursor : undefined,
        },
      }
    },
  },
} as const

/** Takes only the used fields of an entry. `chars`: its size. */
function readTool(entry: unknown): { tool: ServerTool; chars: number; note?: string } | { problem: string } {
  if (!isJsonObject(entry)) return { problem: 'it is no object' }
  const { name, title, description, inputSchema: given, annotations, execution } = entry
  if (typeof name !== 'string' || name === '') return { problem: 'it has no name' }
  if (name.length > MAX_NAME_CHARS) return { problem: 'its name is too long' }
  if (!isTextOrAbsent(title) || !isTextOrAbsent(description)) return { problem: 'its title or description is no text' }
  const inputSchema = fitSchema(given ?? {})
  if (!isJsonObject(inputSchema) || inputSchema['type'] !== 'object')
    return { problem: 'its input schema is not that of an object' }
  if (isJsonObject(execution) && execution['taskSupport'] === 'required')
    return { problem: 'it runs only as a task, which is not supported' }
  const schemaChars = JSON.stringify(inputSchema).length
  if (schemaChars > MAX_SCHEMA_CHARS) return { problem: 'its schema is too large' }
  const notes = isJsonObject(annotations) ? annotations : {}
  const heading = [title, notes['title']].find((each) => typeof each === 'string' && each !== '')
  const words = textOf(description ?? title, MAX_DESCRIPTION_CHARS)
  const tool = {
    name,
    title: textOf(heading, MAX_TITLE_CHARS),
    description: words,
    inputSchema,
    ownSchema: given,
    hints: hintsOf(notes),
  }
  const chars = name.length + (words?.length ?? 0) + schemaChars
  const isCut = typeof description === 'string' && description.length > MAX_DESCRIPTION_CHARS
  return { tool, chars, ...(isCut && { note: `its description is cut at ${MAX_DESCRIPTION_CHARS} characters` }) }
}

const textOf = (value: unknown, maxChars: number): string | undefined =>
  typeof value === 'string' ? truncate(value.toWellFormed(), maxChars) : undefined

const HINTS = {
  readOnlyHint: 'read_only',
  destructiveHint: 'destructive',
  idempotentHint: 'idempotent',
  openWorldHint: 'open_world',
} as const

const hintsOf = (notes: JsonObject): ToolHints =>
  Object.fromEntries(
    Object.entries(HINTS).flatMap(([name, hint]) => (typeof notes[name] === 'boolean' ? [[hint, notes[name]]] : [])),
  )

/** Some servers send null for an absent field. */
const isTextOrAbsent = (value: unknown): boolean => value === undefined || value === null || typeof value === 'string'

const shownName = (entry: unknown): string =>
  isJsonObject(entry) && typeof entry['name'] === 'string' ? truncate(entry['name'], MAX_SHOWN_CHARS) : 'without a name'
