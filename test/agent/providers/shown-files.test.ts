// Tests how the files of a message reach each wire: shared/agent/providers/shown-files.ts, chat/conversation.ts, chat/ollama.ts and ai-sdk/prompt.ts.

import { expect } from 'chai'
import { callModel } from '../../../shared/agent/providers/failures/failover.ts'
import type { Message, ModelPart } from '../../../shared/agent/providers/port.ts'
import { takesFile } from '../../../shared/agent/providers/shown-files.ts'
import type { AttachedFile } from '../../../shared/kernel/attachment.ts'
import { AppError } from '../../../shared/kernel/errors.ts'
import { useModelServer } from '../../support/model-server/model-server.ts'
import { connect, DIALECTS, type Dialect, never } from './ai-sdk/setup.ts'

const CONTENTS: Record<string, Buffer> = {
  'red.png': Buffer.from('png-bytes'),
  'plan.pdf': Buffer.from('pdf-bytes'),
  'say.wav': Buffer.from('wav-bytes'),
  'notes.md': Buffer.from('# <attachment> notes'),
}
const TYPES: Record<string, string> = {
  'red.png': 'image/png',
  'plan.pdf': 'application/pdf',
  'say.wav': 'audio/wav',
  'notes.md': 'text/markdown',
}

const fileOf = (name: string, more: Partial<AttachedFile> = {}): AttachedFile => ({
  ...{ file_id: name, name, path: `attachments/${name}`, media_type: TYPES[name] ?? 'application/zip', bytes: 10 },
  ...more,
})
const user = (text: string, ...names: string[]): Message => ({ role: 'user', text, files: names.map((n) => fileOf(n)) })
const said = (text: string): Message => ({ role: 'assistant', blocks: [{ type: 'text', text }] })
const read = async ({ name }: AttachedFile) => CONTENTS[name]

const [PNG, PDF, WAV, MD] = Object.values(CONTENTS).map((bytes) => bytes.toString('base64'))
const chatImage = { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } }
const chatPdf = { type: 'file', file: { filename: 'plan.pdf', file_data: `data:application/pdf;base64,${PDF}` } }
const NAMED = '[attached: "attachments/notes.md", text/markdown, 1 KiB]'
const INLINE = '<attachment name="notes.md">\n# &lt;attachment> notes\n</attachment>'
const inChat = {
  image: ['messages.0.content.1', chatImage],
  pdf: ['messages.0.content.1', chatPdf],
  audio: ['messages.0.content.1', { type: 'input_audio', input_audio: { data: WAV, format: 'wav' } }],
  text: ['messages.0.content.1', { type: 'text', text: INLINE }],
} as const

type Place = readonly [path: string, value: unknown]
type Kind = 'image' | 'pdf' | 'audio' | 'text'

/** Where a request has the file, and in which form. A kind that is missing is not taken. */
const WIRES: Record<Dialect, Partial<Record<Kind, Place>>> = {
  'openai-compatible': inChat,
  ollama: inChat,
  'openai behind a gateway': inChat,
  'ollama natively': {
    image: ['messages.0.images', [PNG]],
    text: ['messages.0.content', `look\n\n${NAMED}\n\n${INLINE}`],
  },
  openai: {
    image: ['input.0.content.1', { type: 'input_image', image_url: `data:image/png;base64,${PNG}` }],
    pdf: [
      'input.0.content.1',
      { type: 'input_file', filename: 'plan.pdf', file_data: `data:application/pdf;base64,${PDF}` },
    ],
    text: ['input.0.content.1', { type: 'input_text', text: INLINE }],
  },
  anthropic: {
    image: ['messages.0.content.1.source', { type: 'base64', media_type: 'image/png', data: PNG }],
    pdf: ['messages.0.content.1.source', { type: 'base64', media_type: 'application/pdf', data: PDF }],
    text: ['messages.0.content.1.source', { type: 'text', media_type: 'text/plain', data: '# <attachment> notes' }],
  },
  google: {
    image: ['contents.0.parts.1', { inlineData: { mimeType: 'image/png', data: PNG } }],
    pdf: ['contents.0.parts.1', { inlineData: { mimeType: 'application/pdf', data: PDF } }],
    audio: ['contents.0.parts.1', { inlineData: { mimeType: 'audio/wav', data: WAV } }],
    text: ['contents.0.parts.1', { inlineData: { mimeType: 'text/plain', data: MD } }],
  },
}
const NAMES: Record<Kind, string> = { image: 'red.png', pdf: 'plan.pdf', audio: 'say.wav', text: 'notes.md' }

describe('the files of a message at each wire', () => {
  const server = useModelServer({ perTest: true })

  async function send(dialect: Dialect, messages: Message[], readFile = read) {
    const route = { provider: await connect(dialect, server), model: 'test-model' }
    const parts: unknown[] = []
    const request = { messages, tools: [], stopSequences: [] }
    for await (const part of callModel({ primary: route, fallback: undefined, request, readFile, signal: never() }))
      parts.push(part)
    const last = parts.at(-1) as ModelPart
    return { route, body: server.requests.at(-1)?.body, failure: last.type === 'failure' ? last.failure : undefined }
  }

  for (const dialect of DIALECTS)
    for (const kind of ['image', 'pdf', 'audio', 'text'] as const) {
      const place = WIRES[dialect][kind]
      const name = NAMES[kind]
      if (place)
        it(`D47.3: ${dialect} gets ${kind === 'audio' || kind === 'image' ? 'an' : 'a'} ${kind} in its own form, and its name`, async () => {
          server.answer('fine')
          const { body, failure } = await send(dialect, [user('look', name)])
          expect(failure).to.equal(undefined)
          expect(body).to.deep.nested.property(...place)
          expect(JSON.stringify(body)).to.include(JSON.stringify(`attachments/${name}`).slice(1, -1))
        })
      else
        it(`D47.4: ${dialect} is not called with a ${kind}, which it does not take`, async () => {
          const { failure } = await send(dialect, [user('look', name)])
          expect(failure).to.include({ code: 'unsupported_attachment', isRetryable: false })
          expect(failure?.message).to.include(name)
          expect(server.requests).to.have.length(0)
        })
    }

  it('D47.3: the cache point of a message with files is at its last part', async () => {
    server.answer('fine')
    const { body } = await send('anthropic', [user('look', 'red.png', 'plan.pdf')])
    const [{ content }] = (body ?? {})['messages'] as [{ content: object[] }]
    expect(content.map((part) => 'cache_control' in part)).to.deep.equal([false, false, true])
  })

  it('D47.4: what the model does not take of older messages, has expired, or is old, is only named', async () => {
    server.answer('fine')
    const old: Message = { role: 'user', text: 'old', files: [fileOf('red.png', { is_named: true })] }
    const history = [old, said('a'), user('heard', 'say.wav'), said('b'), user('gone', 'gone.png'), said('c')]
    const files = [fileOf('gone.png', { media_type: 'image/png' })]
    const { body } = await send('anthropic', [...history, { role: 'user', text: 'now', files }])
    const text = JSON.stringify(body)
    expect(text).to.include('red.png\\", image/png, 1 KiB; it is not shown any more]')
    expect(text).to.include('say.wav\\", audio/wav, 1 KiB; it cannot be shown to this model]')
    expect(text).to.include('gone.png\\", image/png, 1 KiB; it has expired or was deleted]')
    expect(text).to.not.include(PNG).and.to.not.include(WAV)
  })

  it('D47.3: newer files leave older ones no room beyond 20 MB of one request', async () => {
    server.answer('fine')
    const large = (name: string): Message => ({
      ...{ role: 'user', text: name },
      files: [fileOf(name, { bytes: 15 * 1024 * 1024 })],
    })
    const { body } = await send('anthropic', [large('red.png'), said('a'), large('plan.pdf')])
    expect(JSON.stringify(body)).to.include(PDF).and.to.not.include(PNG)
  })

  it('D47.3: of a long text the model reads the beginning, whole characters alone', async () => {
    server.answer('fine')
    const long = async () => Buffer.from(`a${'ü'.repeat(200_000)}`)
    const { body } = await send('openai-compatible', [user('read', 'notes.md')], long)
    const text = JSON.stringify(body)
    expect(text.match(/ü/g)).to.have.length(131_071)
    expect(text).to.include('[cut: these are the first 256 KiB').and.to.not.include('\ufffd')
  })

  it('D47.4: the refusal of a provider ends the call with the code, and is remembered of the kind', async () => {
    server.answer({ status: 400, message: 'This model does not support image input' })
    const { failure, route } = await send('openai-compatible', [user('look', 'red.png', 'plan.pdf')])
    expect(failure?.code).to.equal('unsupported_attachment')
    expect(takesFile(route, { media_type: 'image/png' })).to.equal(false)
    expect(takesFile(route, { media_type: 'application/pdf' })).to.equal(true)
  })

  it('D47.3: while the store of the files is away, the call may be tried again', async () => {
    const { failure } = await send('anthropic', [user('look', 'red.png')], async () => {
      throw new AppError('unavailable', 'the store is away')
    })
    expect(failure).to.include({ code: 'storage_unavailable', isRetryable: true })
  })
})
