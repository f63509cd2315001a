import type { Session } from '../../../shared/client/client.ts'
import { callLine } from '../follow/call-line.ts'
import type { Output } from '../output.ts'
import { plain, plainLine } from '../text/plain.ts'
import { TextFlow } from '../text/text-flow.ts'

const MOST_MESSAGES = 1_000
const MOST_SHOWN = 20

/** Shows the last messages of a session, in the branch of its newest message or in the branch of `head`. */
export async function showHistory(session: Session, output: Output, head?: string): Promise<void> {
  const messages = await session.messages(head === undefined ? {} : { head }).all(MOST_MESSAGES)
  const { style } = output
  const left = messages.length - MOST_SHOWN
  if (left > 0) output.err(`${style.dim(`  ${style.symbols.cut} ${left} earlier messages`)}\n`)
  for (const { role, blocks } of messages.slice(-MOST_SHOWN))
    for (const block of blocks) {
      if (block.type === 'text' && role === 'user')
        output.err(`${style.bold(`${style.symbols.prompt} ${plain(block.text)}`)}\n`)
      else if (block.type === 'file')
        output.err(`${style.dim(`  ${plainLine(block.name)}  ae files get ${block.file_id} FILE`)}\n`)
      else if (block.type === 'text') output.err(wrapped(plain(block.text), output))
      else if (block.type === 'tool_use') {
        const call = { toolName: block.tool_name, input: block.input }
        output.err(`${callLine({ symbol: style.dim(style.symbols.ok), call }, { style, columns: output.columns() })}\n`)
      }
    }
}

function wrapped(text: string, output: Output): string {
  const flow = new TextFlow(() => Math.min(output.columns(), 100))
  return flow.write(text) + flow.end()
}
