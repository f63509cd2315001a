import { expect } from 'chai'
import type { FileRecord } from '../../../../shared/agent/files/records.ts'
import { refusalOf, useGateways } from '../../setup.ts'

const record = (n: number): FileRecord => ({
  ...{ file_id: `file_${String(n).repeat(32)}`, name: `${n}.txt`, media_type: 'text/plain', bytes: n, sha256: '' },
  ...{ created_at: '2026-11-21T09:30:00.500Z', expires_at: '2026-11-22T09:30:00.500Z' },
})
const shown = (n: number) => ({
  ...{ id: `file_${String(n).repeat(32)}`, object: 'file', bytes: n, filename: `${n}.txt`, purpose: 'user_data' },
  ...{ status: 'processed', created_at: 1_795_253_400, expires_at: 1_795_339_800 },
})

describe("the files of a client of OpenAI's Files", () => {
  const start = useGateways({ perTest: false })
  const asked: unknown[] = []
  let records: FileRecord[]
  let url: string
  before(async () => {
    const files = {
      get: async (_tenant: unknown, id: string) => records.find(({ file_id }) => file_id === id),
      page: async (_tenant: unknown, { after, limit }: { after: unknown; limit: number }) => {
        asked.push([after, limit])
        return records.slice(0, limit)
      },
      delete: async (_tenant: unknown, id: string) => void asked.push(id),
    }
    url = (await start({ files: { files } as never })).url
  })
  beforeEach(() => {
    asked.length = 0
    records = [1, 2, 3].map(record)
  })

  const ask = async (path = '', method = 'GET') => {
    const response = await fetch(`${url}/openai/v1/files${path}`, { method })
    return {
      status: response.status,
      body: (await response.json()) as { data: { id: string }[] } & Record<string, unknown>,
    }
  }
  const ids = [1, 2, 3].map((n) => shown(n).id)

  it('D48.2: are listed newest first, a page at a time, and the page says whether others follow', async () => {
    const pages: [query: string, count: number, hasMore: boolean, asked: unknown[]][] = [
      ['?limit=2', 2, true, [undefined, 3]],
      ['?limit=3', 3, false, [undefined, 4]],
      ['', 3, false, [undefined, 501]],
      ['?limit=10000', 3, false, [undefined, 501]],
      [`?limit=1&after=${ids[1]}`, 1, true, [[record(2).created_at, ids[1]], 2]],
    ]
    for (const [query, count, has_more, found] of pages) {
      const { body } = await ask(query)
      const data = [1, 2, 3].slice(0, count).map(shown)
      const ends = { first_id: ids[0], last_id: ids[count - 1] }
      expect(body, query).to.deep.equal({ object: 'list', data, ...ends, has_more })
      expect(asked.pop(), query).to.deep.equal(found)
    }
    records = []
    expect((await ask()).body).to.deep.equal({
      object: 'list',
      data: [],
      first_id: null,
      last_id: null,
      has_more: false,
    })
  })

  it('D48.2: are read and deleted by their ids, and other ids and limits are refused', async () => {
    expect((await ask(`/${ids[1]}`)).body).to.deep.equal(shown(2))
    expect((await ask(`/${ids[1]}`, 'DELETE')).body).to.deep.equal({ id: ids[1], object: 'file', deleted: true })
    expect(asked).to.deep.equal([ids[1]])
    for (const query of ['?limit=0', '?limit=10001', '?after=x']) {
      const response = await fetch(`${url}/openai/v1/files${query}`)
      expect([response.status, (await refusalOf(response)).type], query).to.deep.equal([400, 'invalid_request_error'])
    }
  })
})
