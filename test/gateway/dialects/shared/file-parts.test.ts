import { expect } from 'chai'
import { Fields } from '../../../../services/gateway/dialects/shared/fields.ts'
import { fileOf, pastFilesIn } from '../../../../services/gateway/dialects/shared/file-parts.ts'
import type { JsonObject } from '../../../../shared/kernel/events.ts'

const ID = `file_${'a'.repeat(32)}`
const DATA_URL = 'data:image/png;base64,AAAA'
const WEB = 'https://example.com/a.png'
const png = { data: 'AAAA', media_type: 'image/png', at: '/p' }
const fetched = { url: WEB, at: '/p' }
const source = (type: string, value: string) => ({ type, value, mimeType: 'image/png' })

const PARTS: Record<string, [part: JsonObject, file: object][]> = {
  'chat completions': [
    [
      { type: 'image_url', image_url: { url: DATA_URL } },
      { ...png, at: '/p/image_url' },
    ],
    [
      { type: 'image_url', image_url: { url: WEB } },
      { ...fetched, at: '/p/image_url' },
    ],
    [
      { type: 'input_audio', input_audio: { data: 'AAAA', format: 'mp3' } },
      { ...png, media_type: 'audio/mp3' },
    ],
    [
      { type: 'file', file: { file_id: ID } },
      { file_id: ID, at: '/p/file/file_id' },
    ],
    [
      { type: 'file', file: { file_data: 'AAAA', filename: 'a.pdf' } },
      { data: 'AAAA', name: 'a.pdf', at: '/p/file' },
    ],
  ],
  Responses: [
    [{ type: 'input_image', image_url: DATA_URL }, png],
    [
      { type: 'input_image', file_id: ID },
      { file_id: ID, at: '/p/file_id' },
    ],
    [
      { type: 'input_file', file_data: DATA_URL, filename: 'a.png' },
      { ...png, name: 'a.png' },
    ],
    [{ type: 'input_file', file_url: WEB }, fetched],
  ],
  UI: [
    [
      { type: 'file', url: DATA_URL, mediaType: 'image/png', filename: 'a.png' },
      { ...png, name: 'a.png' },
    ],
    [
      { type: 'file', url: `/v1/files/${ID}/content`, mediaType: 'image/png' },
      { file_id: ID, media_type: 'image/png', at: '/p' },
    ],
    [
      { type: 'file', url: 'data:,a%20b', mediaType: 'text/plain' },
      { data: 'YSBi', media_type: 'text/plain', at: '/p' },
    ],
  ],
  'AG-UI': [
    [{ type: 'binary', mimeType: 'image/png', data: 'AAAA' }, png],
    [
      { type: 'binary', mimeType: 'image/png', id: ID },
      { file_id: ID, at: '/p/id' },
    ],
    [
      { type: 'binary', mimeType: 'image/png', url: WEB, filename: 'b.png' },
      { ...fetched, media_type: 'image/png', name: 'b.png' },
    ],
    [
      { type: 'image', source: source('data', 'AAAA') },
      { ...png, at: '/p/source' },
    ],
    [
      { type: 'document', source: source('url', `https://me/api/v1/files/${ID}/content`) },
      { file_id: ID, media_type: 'image/png', at: '/p/source' },
    ],
    [
      { type: 'audio', source: source('file', ID) },
      { file_id: ID, at: '/p/source/value' },
    ],
  ],
  A2A: [
    [
      { raw: 'AAAA', mediaType: 'image/png', filename: 'a.png' },
      { ...png, name: 'a.png' },
    ],
    [{ url: WEB, filename: '', mediaType: '' }, fetched],
  ],
}

const fileIn = (part: JsonObject) => fileOf(new Fields(part, '/p'))

describe('the files among the parts of a message', () => {
  for (const [dialect, parts] of Object.entries(PARTS))
    it(`D48.1: are read as ${dialect} has them`, () => {
      for (const [part, file] of parts) expect(fileIn(part), JSON.stringify(part)).to.deep.equal(file)
    })

  it('D48.1: are told from other parts, and refused at their place when something is wrong with them', () => {
    for (const other of [{ type: 'text', text: 'a' }, { type: 'toString' }, { data: {} }, {}])
      expect(fileIn(other)).to.equal(undefined)
    const wrong: [JsonObject, string][] = [
      [{ type: 'image_url' }, '/p/image_url'],
      [{ type: 'file', file: {} }, '/p/file/file_data'],
      [{ type: 'file', url: DATA_URL, filename: '../a' }, '/p/filename'],
      [{ type: 'file', url: 'data:,%zz' }, '/p/url'],
      [{ type: 'image', source: {} }, '/p/source/type'],
    ]
    for (const [part, param] of wrong)
      expect(() => fileIn(part))
        .to.throw()
        .with.property('param', param)
    expect(pastFilesIn(new Fields({ parts: [wrong[0]?.[0]] }), 'parts')).to.deep.equal([])
  })
})
