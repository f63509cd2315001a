import { expect } from 'chai'
import { listPublished } from '../../../../services/gateway/dialects/shared/published-flows.ts'
import { DEFAULT_TENANT } from '../../../../shared/kernel/tenant.ts'

type Library = Parameters<typeof listPublished>[0]
type Flows = Awaited<ReturnType<Library['list']>>['flows']

/** A library with a flow of each name, whose schemas have these descriptions; one without them is a draft. */
function libraryOf(
  described: Record<string, [input?: string | undefined, output?: string | undefined] | undefined>,
): Library {
  const schemaOf = (description: string | undefined) => ({ type: 'object', ...(description && { description }) })
  const flows = Object.entries(described).map(([name, published]) => ({
    name,
    uid: name,
    state: published ? 'published' : 'draft',
    version: 1,
    kept_version: null,
  }))
  return {
    list: async () => ({ flows: flows as unknown as Flows, total: flows.length, next_cursor: 'next' }),
    definitionOf: async (_tenant, { uid }) => {
      const [input, output] = described[uid] ?? []
      const definition = { input_schema: schemaOf(input), output_schema: schemaOf(output) }
      return definition as unknown as Awaited<ReturnType<Library['definitionOf']>>
    },
  }
}

describe('the flows that formats describe', () => {
  it('are those that run, described by their input, else by their output, else by their name', async () => {
    const library = libraryOf({ a: ['in', 'out'], b: ['in'], c: [undefined, 'out'], d: [], e: undefined })
    const { flows, nextCursor } = await listPublished(library, DEFAULT_TENANT, { limit: 9 })
    expect(flows.map(({ name, description }) => `${name}: ${description}`)).to.deep.equal([
      ...['a: in', 'b: in', 'c: out', 'd: Runs the flow d.'],
    ])
    expect(nextCursor).to.equal('next')
  })
})
