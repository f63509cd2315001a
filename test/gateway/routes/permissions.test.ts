import { expect } from 'chai'
import type { PermissionSummary } from '../../../shared/cluster/permissions/store.ts'
import type { PageRequest } from '../../../shared/kernel/cursor.ts'
import { NO_TOOLS } from '../../support/app-defaults.ts'
import { useContract } from '../described.ts'
import { PERMISSION_ID, RUN_ID, useGateways } from '../setup.ts'

const PENDING: PermissionSummary = {
  id: PERMISSION_ID,
  session_id: 's-1',
  run_id: RUN_ID,
  tool_name: 'Write',
  tool_use_id: 'call_1',
  input: { path: 'a.txt', content: 'hello' },
  message: 'Write wants to create a.txt',
  created_at: '2026-11-21T09:30:00.000Z',
  expires_at: '2026-11-21T09:35:00.000Z',
}

describe('the list of pending permissions', () => {
  const start = useGateways()
  const described = useContract()

  it('D4.12: GET /permissions returns the page that limit and cursor select', async () => {
    const asked: PageRequest[] = []
    const { get } = await start({
      methods: {
        async listPermissions(_tenant, page) {
          asked.push(page)
          return { permissions: [PENDING, { ...PENDING, session_id: RUN_ID }], next_cursor: 'c2' }
        },
      },
    })
    const list = await described('GET', '/permissions', await get('/permissions'))
    expect(list).to.deep.equal({ permissions: [PENDING, { ...PENDING, session_id: RUN_ID }], next_cursor: 'c2' })
    await get('/permissions?limit=200&cursor=a-b_1&status=ignored')
    expect(asked).to.deep.equal([{ limit: 50 }, { limit: 200, cursor: 'a-b_1' }])
  })

  it('D24.3: GET /permissions/{id} shows a request that is pending, and 404 says what may have become of another', async () => {
    const { get } = await start({
      methods: {
        findPermission: async (_tenant, scope, id) =>
          scope === undefined && id === PERMISSION_ID ? PENDING : undefined,
      },
    })
    const path = '/permissions/{request_id}'
    expect(await described('GET', path, await get(`/permissions/${PERMISSION_ID}`))).to.deep.equal(PENDING)
    const other = await get(`/permissions/perm_${'0'.repeat(32)}`)
    expect(other.status).to.equal(404)
    expect(await described('GET', path, other)).to.nested.include({ 'error.type': 'not_found_error' })
    expect((await get('/permissions/x')).status).to.equal(404)
  })

  it('D40.4: the answer to a form is checked by the form, also when nothing of it was changed', async () => {
    const schema = {
      type: 'object',
      required: ['name'],
      properties: { name: { type: 'string' }, size: { default: 1 } },
    }
    const replies: unknown[] = []
    const { post } = await start({
      toolBox: {
        ...NO_TOOLS,
        formProblem: async (form, { name }) => (form === schema && name === undefined ? 'name is missing.' : undefined),
      },
      methods: {
        findPermission: async () => ({ ...PENDING, input: { size: 1 }, preview: { kind: 'form', schema } }),
        async replyPermission(_tenant, _scope, _id, { allow, input }) {
          replies.push([allow, input])
        },
      },
    })
    const send = async (reply: object) => post(`/sessions/s-1/permissions/${PERMISSION_ID}`, reply)
    const path = '/sessions/{id}/permissions/{request_id}'
    for (const reply of [{ allow: true }, { allow: true, input: { size: 2 } }]) {
      const refused = await send(reply)
      expect(refused.status).to.equal(400)
      expect(await described('POST', path, refused)).to.nested.include({ 'error.param': '/input' })
    }
    expect((await send({ allow: true, input: { name: 'x' } })).status).to.equal(200)
    expect((await send({ allow: false })).status).to.equal(200)
    expect(replies).to.deep.equal([
      [true, { name: 'x' }],
      [false, undefined],
    ])
  })

  it('D2.7, D2.11: a wrong limit or cursor, or one given twice, is 400 and names the parameter', async () => {
    const { get } = await start()
    for (const [query, param] of [
      ['limit=0', '/limit'],
      ['limit=201', '/limit'],
      ['limit=1&limit=2', '/limit'],
      ['cursor=', '/cursor'],
      ['cursor=a%2Bb', '/cursor'],
      ['cursor=a&cursor=b', '/cursor'],
    ] as const) {
      const response = await get(`/permissions?${query}`)
      expect(response.status, query).to.equal(400)
      expect(await described('GET', '/permissions', response)).to.nested.include({ 'error.param': param })
    }
  })
})
