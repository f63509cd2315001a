import { expect } from 'chai'
import { createProvider } from '../../../services/wiring/models/create-provider.ts'
import type { Message } from '../../../shared/agent/providers/port.ts'
import type { Attachment } from '../../../shared/kernel/attachment.ts'
import { useModelServer } from '../../support/model-server/model-server.ts'
import { ask, DIALECTS, type Dialect, KEY, request, settingsFor, textOf } from './ai-sdk/setup.ts'

const PNG: Attachment = { name: 'a.png', mediaType: 'image/png', base64: 'iVBORw0KGgoAAAAN' }
const PDF: Attachment = { name: 'b.pdf', mediaType: 'application/pdf', base64: 'JVBERi0xLjQKJcfs' }

const MESSAGES: Message[] = [
  { role: 'user', text: 'look' },
  { role: 'assistant', blocks: [{ type: 'tool_use', id: 'a', toolName: 'Read', input: {} }] },
  {
    role: 'tool',
    results: [{ id: 'a', toolName: 'Read', output: 'two files', isError: false, attachments: [PNG, PDF] }],
  },
]

describe('the files of a tool result', () => {
  let lines: string[]
  const server = useModelServer({ perTest: true })
  beforeEach(async () => {
    lines = []
  })

  const connect = (dialect: Dialect) =>
    createProvider({ apiKey: KEY, ...settingsFor(dialect, server), onLeftOut: (line) => lines.push(line) })

  for (const dialect of DIALECTS) {
    it(`reach a model over ${dialect} with their types`, async () => {
      expect(textOf(await ask(await connect(dialect), request({ messages: MESSAGES })))).to.equal('ok')
      const sent = JSON.stringify(server.requests[0]?.body)
      expect(sent).to.include('two files').and.include(PNG.base64)
      if (dialect === 'ollama natively') return // It takes images without a type, and no PDFs.
      expect(sent).to.include(PDF.base64).and.include('image/png').and.include('application/pdf')
    })

    it(`are left out for a model over ${dialect} that does not take them, with one log line`, async () => {
      server.otherwise(({ body }) =>
        JSON.stringify(body).includes(PNG.base64)
          ? { status: 400, message: 'This model does not support image input.' }
          : 'ok',
      )
      const provider = await connect(dialect)
      for (let turn = 1; turn <= 2; turn++) {
        expect(textOf(await ask(provider, request({ messages: MESSAGES })))).to.equal('ok')
        expect(server.requests).to.have.length(1 + turn)
      }
      const sent = JSON.stringify(server.requests[2]?.body)
      expect(sent).to.include('two files').and.include('cannot be shown to this model').and.not.include(PDF.base64)
      expect(lines).to.have.length(1)
    })
  }
})
