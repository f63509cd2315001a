import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import fc from 'fast-check'
import { parse } from 'yaml'
import { AppError } from '../../../shared/kernel/errors.ts'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import { readDefinition } from '../../../shared/work/flows/definition.ts'
import { loadFlows, toYaml } from '../../../shared/work/flows/folder.ts'
import type { Flow } from '../../../shared/work/flows/port.ts'
import { useTempFolder } from '../../support/temp-folder.ts'
import { useTestStore } from '../../support/test-store.ts'
import { BODY, type Opened, openLibrary, TENANT } from './setup.ts'

const yamlOf = (name: string, more = '') =>
  `tenant: t_1\nname: ${name}\ninput_schema: {type: object}\noutput_schema: {type: object}\n${more}`

describe('FLOWS_DIR', () => {
  const opened = useTestStore()
  let { library } = {} as Opened
  const folder = useTempFolder({ perTest: true })
  let dir = ''
  let names = 0
  let name = ''
  beforeEach(async () => {
    ;({ library } = openLibrary(opened.store))
    dir = folder.path
    name = `loaded-${++names}`
  })
  const write = (files: Record<string, string>) =>
    Promise.all(Object.entries(files).map(([file, text]) => writeFile(join(dir, file), text)))

  it('D1.3 FLOWS_DIR: each YAML file is stored as a draft of its tenant, and other files are not read', async () => {
    const prompt = 'system_prompt_template: |\n  One.\n  Two {{.memory}}\ntools: [Read]\nevolve: true\n'
    await write({ 'a.yaml': yamlOf(name, prompt), 'b.yml': yamlOf(`${name}-b`), 'c.txt': '{', '.d.yaml': '{' })
    expect(await loadFlows(dir, library)).to.deep.equal({ flows: 2, problems: [] })
    const flow = await library.get(TENANT, name)
    expect(flow).to.include({ version: 1, state: 'draft' })
    expect(flow.definition).to.deep.equal({
      ...BODY,
      system_prompt_template: 'One.\nTwo {{.memory}}\n',
      tools: ['Read'],
      sub_agents: [],
      evolve: true,
    })
    expect((await library.get(TENANT, `${name}-b`)).version).to.equal(1)
  })

  it('a restart makes no version and keeps a published flow published; a changed file makes a draft', async () => {
    await write({ 'a.yaml': yamlOf(name) })
    await loadFlows(dir, library)
    await library.publish(TENANT, name)
    await Promise.all([loadFlows(dir, library), loadFlows(dir, openLibrary(opened.store).library)])
    expect(await library.get(TENANT, name)).to.include({ version: 1, state: 'published' })
    await write({ 'a.yaml': yamlOf(name, 'evolve: true') })
    await loadFlows(dir, library)
    expect(await library.get(TENANT, name)).to.include({ version: 2, state: 'draft', published_version: 1 })
  })

  it('of more than 1,000 files the last ones are not loaded, and this is said', async () => {
    const loaded: string[] = []
    const putIfChanged: Opened['library']['putIfChanged'] = async (_tenant, flow) => {
      loaded.push(flow)
      return {} as Flow
    }
    const number = (i: number) => String(i).padStart(4, '0')
    const all = Array.from({ length: 1_002 }, (_, i) => `f${number(i)}`)
    await write(Object.fromEntries(all.toReversed().map((each) => [`${each}.yaml`, yamlOf(each)])))
    const { flows, problems } = await loadFlows(dir, { putIfChanged })
    expect(flows).to.equal(1_000)
    expect(loaded).to.deep.equal(all.slice(0, 1_000))
    expect(problems).to.deep.equal([`FLOWS_DIR ${dir} has more than 1000 files: the last 2 are not loaded`])
  })

  it('a problem names its place where there is one', async () => {
    await write({ 'a.yaml': yamlOf(name) })
    for (const [param, place] of [
      [undefined, ''],
      ['', ' (at /)'],
      ['/tools', ' (at /tools)'],
    ] as const) {
      const refused = new AppError('conflict', 'too many', param === undefined ? {} : { param })
      const { problems } = await loadFlows(dir, { putIfChanged: () => Promise.reject(refused) })
      expect(problems).to.deep.equal([`the flow in a.yaml is not loaded: too many${place}`])
    }
  })

  it('a file without a tenant belongs to t_default', async () => {
    await write({ 'a.yaml': yamlOf(name).replace('tenant: t_1\n', '') })
    await loadFlows(dir, library)
    expect(await library.get(DEFAULT_TENANT, name)).to.include({ version: 1 })
  })

  it('a file that is a link, as in a mounted ConfigMap, is read once, and a folder is reported', async () => {
    await mkdir(join(dir, '..2026_01_01', 'more'), { recursive: true })
    await writeFile(join(dir, '..2026_01_01', 'a.yaml'), yamlOf(name))
    await symlink('..2026_01_01', join(dir, '..data'))
    await symlink('..data/a.yaml', join(dir, 'a.yaml'))
    await symlink('..data/more', join(dir, 'more'))
    expect(await loadFlows(dir, library)).to.deep.equal({
      flows: 1,
      problems: ['the folder more in FLOWS_DIR is not read: put its flows directly into FLOWS_DIR'],
    })
    expect(await library.get(TENANT, name)).to.include({ version: 1 })
  })

  const WRONG: Record<string, [text: string, reason: RegExp]> = {
    'no YAML': ['a: [', /not valid YAML/],
    'a list': ['- a', /not a YAML mapping/],
    'nothing at all': ['', /not a YAML mapping/],
    'no name': [yamlOf('x').replace('name: x\n', ''), /name is missing/],
    'a wrong tenant': [yamlOf('x').replace('t_1', '"t 1"'), /tenant must be/],
    'a built-in name': [yamlOf('extract'), /built in/],
    'the reserved name': [yamlOf('tools'), /reserved/],
    'a wrong name': [yamlOf('Upper'), /name must be/],
    'no output_schema': [
      yamlOf('x').replace(/output_schema.*\n/, ''),
      /output_schema is required.*\(at \/output_schema\)/,
    ],
    'a wrong field': [yamlOf('x', 'tools: {}'), /tools must be a list.*\(at \/tools\)/],
    'a bomb of aliases': [
      yamlOf(
        'x',
        `a: &a [1,2]\n${'bcdefghij'
          .split('')
          .map((key, i) => `${key}: &${key} [${`*${'abcdefghi'[i]},`.repeat(9)}]\n`)
          .join('')}`,
      ),
      /not valid YAML/,
    ],
    'more than 2 MiB': [yamlOf('x', `#${'x'.repeat(2 * 1024 * 1024)}`), /larger than/],
  }
  for (const [what, [text, reason]] of Object.entries(WRONG)) {
    it(`a file with ${what} is reported by its name, and the others are loaded`, async () => {
      await write({ 'bad.yaml': text, 'good.yaml': yamlOf(name) })
      const { problems } = await loadFlows(dir, library)
      expect(problems).to.have.length(1)
      expect(problems[0]).to.include('the flow in bad.yaml is not loaded: ').and.match(reason)
      expect(await library.get(TENANT, name)).to.include({ version: 1 })
    })
  }

  it('of two files with the same flow the first is loaded, so that restarts do not alternate', async () => {
    await write({ 'a.yaml': yamlOf(name), 'b.yaml': yamlOf(name, 'evolve: true') })
    const { problems } = await loadFlows(dir, library)
    expect(problems).to.deep.equal(['the flow in b.yaml is not loaded: a.yaml has the same flow'])
    expect((await library.get(TENANT, name)).definition.evolve).to.equal(false)
  })

  it('a folder in place of a file, a broken link, a link to itself and a missing folder are reported', async () => {
    await mkdir(join(dir, 'a.yaml'))
    await symlink('nowhere', join(dir, 'b.yaml'))
    await symlink('c.yaml', join(dir, 'c.yaml'))
    expect((await loadFlows(dir, library)).problems).to.deep.equal([
      'the flow in a.yaml is not loaded: it is not a file',
      'the flow in b.yaml is not loaded: it cannot be read',
      'the flow in c.yaml is not loaded: it cannot be read',
    ])
    const { problems } = await loadFlows(join(dir, 'missing'), library)
    expect(problems).to.have.length(1)
    expect(problems[0]).to.match(/FLOWS_DIR .*missing is not a folder that can be read/)
  })

  it('an error of the store is reported without its own text', async () => {
    await write({ 'a.yaml': yamlOf(name) })
    const failing = (cause: Error) => ({
      putIfChanged: () => Promise.reject(cause),
    })
    const away = new AppError('unavailable', 'the store cannot be reached')
    expect((await loadFlows(dir, failing(away))).problems[0]).to.include('the store cannot be reached')
    expect((await loadFlows(dir, failing(new Error('mongodb://secret')))).problems[0]).to.include('it cannot be read')
  })

  it('toYaml writes long lines whole and repeated values twice, so that the file is easy to edit', async () => {
    const schema = { type: 'object' }
    const line = 'word '.repeat(100)
    const definition = readDefinition({ input_schema: schema, output_schema: schema, system_prompt_template: line })
    const text = await toYaml({ name: 'x', definition } as Flow)
    expect(text).to.include(line).and.not.match(/[&*]/)
    expect(text.startsWith('name: x\ninput_schema:\n  type: object\noutput_schema:\n  type: object\n')).to.equal(true)
  })

  it('toYaml writes the same format without a tenant, from which the same definition is read', async () => {
    const text = fc.string({ unit: 'grapheme' })
    const definitions = fc.record(
      {
        system_prompt_template: text,
        model: fc.string({ minLength: 1, maxLength: 20 }),
        input_schema: fc.dictionary(text, fc.jsonValue({ stringUnit: 'grapheme' })),
        sub_agents: fc.constant([
          { name: 'a', prompt: '- x: {{.memory}}\n#', output_schema: { type: ['string', 'null'] } },
        ]),
        evolve: fc.boolean(),
      },
      { requiredKeys: ['input_schema'] },
    )
    const property = fc.asyncProperty(definitions, async (fields) => {
      const definition = readDefinition({ output_schema: {}, ...(JSON.parse(JSON.stringify(fields)) as object) })
      const read = parse(await toYaml({ name: 'x', definition } as Flow)) as { name: string }
      expect(read.name).to.equal('x')
      expect(read).not.to.have.any.keys('tenant', 'version')
      expect(readDefinition(read)).to.deep.equal(definition)
    })
    await fc.assert(property, { numRuns: 200 })
  })
})
