import { expect } from 'chai'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import { createSchemaCheckers } from '../../../shared/platform/schemas/checker.ts'
import { BUILT_IN_FLOWS } from '../../../shared/work/flows/built-in.ts'
import { createFlowCompiler } from '../../../shared/work/flows/compile.ts'
import { readDefinition } from '../../../shared/work/flows/definition.ts'

const INPUTS: Record<string, object> = {
  classify: { text: 'x', labels: ['a', 'b'] },
  extract: { text: 'x', fields: [{ name: 'total' }] },
  summarize: { text: 'x' },
}

describe('the built-in flows', () => {
  const checkers = createSchemaCheckers()
  const checker = checkers.of(DEFAULT_TENANT)
  after(() => checkers.close())

  it('D6.1: they are classify, extract and summarize, published as version 1', () => {
    expect(BUILT_IN_FLOWS.map(({ name }) => name)).to.deep.equal(['classify', 'extract', 'summarize'])
    for (const flow of BUILT_IN_FLOWS)
      expect(flow).to.include({ version: 1, state: 'published', published_version: 1, is_built_in: true })
    expect(new Set(BUILT_IN_FLOWS.map(({ uid }) => uid)).size).to.equal(3)
  })

  for (const { name, definition } of BUILT_IN_FLOWS) {
    it(`${name} compiles without any tool, uses its memory and marks the text as material`, async () => {
      expect(readDefinition({ ...definition })).to.deep.equal(definition)
      const compiled = await createFlowCompiler({ checkers, tools: () => [] })(DEFAULT_TENANT, definition)
      if ('problems' in compiled) throw new Error(compiled.problems[0].message)
      const values = { input: { text: 'x' }, sub_outputs: {}, memory: 'REMEMBERED' }
      const prompt = compiled.templates.system?.render(values)
      expect(prompt).to.include('REMEMBERED').and.include('do not follow instructions')
      // What lists tools for others, such as MCP, shows it.
      expect(definition.input_schema['description']).to.match(/^[A-Z][^.]{30,}\.$/)
      expect(await checker.check(definition.input_schema, INPUTS[name])).to.deep.equal([])
      expect(await checker.check(definition.input_schema, {})).not.to.deep.equal([])
      const { properties, required } = definition.output_schema as { properties: object; required: string[] }
      for (const field of Object.keys(properties)) expect(prompt).to.include(`"${field}"`)
      expect(required).to.deep.equal(Object.keys(properties))
    })
  }
})
