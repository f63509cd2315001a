import {
  type CallToolResult,
  type Client,
  ProtocolError,
  type ResourceLink,
  SdkError,
  SdkErrorCode,
} from '@modelcontextprotocol/client'
import { truncate } from '../../../kernel/text.ts'
import type { NewFile } from '../../files/files.ts'
import { AnswerProblem, MALFORMED } from './answers.ts'
import { MAX_ANSWER_BYTES } from './config.ts'
import { embeddedFiles, fileNameOf, fileOf, MAX_FILES } from './content.ts'
import type { SharedClient } from './shared-client.ts'

/** `unread` gives the reason why a link was not read, by its address. */
type BroughtFiles = { files: NewFile[]; unread: Map<string, string> }

/** `client` is the one that received the answer: another session of the server may not know the addresses. */
type Reading = { client: SharedClient; signal: AbortSignal; limitMs: number }

const MAX_REASON_CHARS = 500

/**
 * The files that an answer embeds, and those that its resource links name, which are read one after the other from the server that gave them (D50.5).
 * For all links together the limits of one call apply: its longest silence, and the bytes of one answer. Throws only when the run ends.
 */
export async function broughtFiles({ content }: CallToolResult, reading: Reading): Promise<BroughtFiles> {
  const { client, signal, limitMs } = reading
  const end = AbortSignal.any([signal, AbortSignal.timeout(limitMs)])
  const files = embeddedFiles(content)
  const unread = new Map<string, string>()
  let [asked, leftBytes] = [0, MAX_ANSWER_BYTES.http]
  for (const link of new Map(content.filter(isLink).map((each) => [each.uri, each])).values()) {
    try {
      end.throwIfAborted()
      if (asked++ >= MAX_FILES || files.length >= MAX_FILES) throw new Unread('the answer brings too many files')
      const found = await client.run((each) => contentsOf(each, link, { end, limitMs }))
      const bytes = found.reduce((sum, each) => sum + each.bytes, 0)
      if (bytes > leftBytes) throw new Unread('the answer brings too many bytes')
      leftBytes -= bytes
      files.push(...found.slice(0, MAX_FILES - files.length))
    } catch (cause) {
      signal.throwIfAborted()
      unread.set(link.uri, end.aborted ? `the server did not answer within ${limitMs} ms` : reasonOf(cause))
    }
  }
  return { files, unread }
}

class Unread extends Error {}

const isLink = (block: CallToolResult['content'][number]): block is ResourceLink => block.type === 'resource_link'

async function contentsOf(
  client: Client,
  { uri, name }: ResourceLink,
  { limitMs, end }: { limitMs: number; end: AbortSignal },
): Promise<NewFile[]> {
  if (!client.getServerCapabilities()?.resources) throw new Unread('the server offers no resources')
  const limits = { signal: end, timeout: limitMs, maxTotalTimeout: limitMs }
  const { contents } = await client.readResource({ uri }, { ...limits, cacheMode: 'bypass' })
  const files = contents.map((each) => {
    const bytes = 'blob' in each ? Buffer.from(each.blob, 'base64') : Buffer.from(each.text)
    return fileOf(fileNameOf(contents.length === 1 ? name : each.uri) ?? fileNameOf(uri) ?? 'file', bytes)
  })
  if (files.every(({ bytes }) => bytes === 0)) throw new Unread('it is empty')
  return files.filter(({ bytes }) => bytes > 0)
}

function reasonOf(cause: unknown): string {
  if (cause instanceof Unread) return cause.message
  if (cause instanceof SdkError && cause.code === SdkErrorCode.InvalidResult) return `the server ${MALFORMED.what}`
  if (!(cause instanceof ProtocolError)) return 'the server could not answer'
  if (cause.data instanceof AnswerProblem) return `the server ${cause.data.what}`
  return `the server refused: ${truncate(cause.message, MAX_REASON_CHARS)}`
}
