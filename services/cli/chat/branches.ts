import type { Schema } from '../../../shared/client/api.ts'
import type { AgentEngine, Session } from '../../../shared/client/client.ts'
import type { Cli } from '../cli.ts'
import { plainLine } from '../text/plain.ts'
import { cut } from '../text/width.ts'
import { showHistory } from './history.ts'

type Message = Schema<'SessionMessage'>

/** A session, and where its next message goes. */
export type Branching = {
  session: Session
  client: AgentEngine
  cli: Cli
  /** The message that the next message follows; `null`: none, `undefined`: the newest message. */
  after: string | null | undefined
}

/** The most branches that are listed: the newest ones. */
const MOST_BRANCHES = 20

/** The messages of the branch that the next message continues. */
const shownOf = async ({ session, after }: Branching): Promise<Message[]> =>
  after === null ? [] : session.messages(after === undefined ? {} : { head: after }).all()

/** The message that the next message follows; `undefined` before the first message. */
export const lastOf = async (chat: Branching): Promise<string | undefined> => (await shownOf(chat)).at(-1)?.id

/** Makes the next message continue the newest branch. Returns the line to print. */
export async function undo(chat: Branching): Promise<string> {
  const last = (await shownOf(chat)).findLast(({ role }) => role === 'user')
  if (!last) return 'there is no message to take back'
  chat.after = last.parent_id
  return `the next message takes the place of: ${promptOf([last])}`
}

async function branchesOf({ session, client }: Branching): Promise<string[]> {
  const page = await client.raw.get('/sessions/{id}/messages', { path: { id: session.id }, query: { limit: 1 } })
  return page.branches.slice(-MOST_BRANCHES)
}

/** A line for each branch, with its last message of the user. The newest branch is last. */
export async function listBranches(chat: Branching): Promise<string[]> {
  const heads = await branchesOf(chat)
  const { columns, style } = chat.cli.output
  const current = chat.after === undefined ? heads.at(-1) : chat.after
  const lines: string[] = []
  for (const [i, head] of heads.entries()) {
    const messages = await chat.session.messages({ head }).all()
    const mark = head === current ? style.symbols.prompt : ' '
    lines.push(cut(`${mark} ${i + 1}  ${promptOf(messages)}`, columns() - 3, style.symbols.cut))
  }
  return lines.length > 0 ? lines : ['nothing was said yet']
}

/** Shows a branch, and makes the next message continue it. Returns the line to print. */
export async function goToBranch(number: string, chat: Branching): Promise<string> {
  const head = (await branchesOf(chat))[Number(number) - 1]
  if (head === undefined) return `there is no branch ${plainLine(number)}: /branches lists them`
  chat.after = head
  await showHistory(chat.session, chat.cli.output, head)
  return `the next message continues branch ${number}`
}

const promptOf = (messages: readonly Message[]): string => {
  const { blocks = [] } = messages.findLast(({ role }) => role === 'user') ?? {}
  return plainLine(blocks.map((block) => ('text' in block ? block.text : '')).join(' '))
}
