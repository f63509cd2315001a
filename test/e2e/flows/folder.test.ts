import { randomBytes } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { REQUEST } from '../../support/flow-streams.ts'
import { useMongo } from '../../support/mongo.ts'
import { inBothForms, type Product } from '../../support/product.ts'
import { useTempFolder } from '../../support/temp-folder.ts'

const START_MS = 60_000

type Listed = { name: string; version: number; state: string; built_in: boolean }

const flowFile = (name: string, prompt: string) => `# A flow of the operator.
name: ${name}
system_prompt_template: |
  ${prompt}
  {{.memory}}
input_schema:
  type: object
  required: [text]
  properties: { text: &text { type: string } }
output_schema:
  type: object
  required: [answer]
  properties: { answer: *text }
`

inBothForms('FLOWS_DIR', (startProduct, form) => {
  const mongo = form === 'cluster' ? useMongo() : undefined
  const masterKey = randomBytes(32).toString('base64')
  const dir = useTempFolder()
  let product: Product

  /** Writes the files, and starts the product with them. */
  const start = async (files: Record<string, string>) => {
    await Promise.all(Object.entries(files).map(([name, text]) => writeFile(join(dir.path, 'flows', name), text)))
    product = await startProduct({
      ...mongo?.env,
      MASTER_KEY: masterKey,
      ALLOW_PRIVATE_URLS: 'true',
      DATA_DIR: join(dir.path, 'data'),
      FLOWS_DIR: join(dir.path, 'flows'),
    })
  }

  const call = (method: string, path: string, body?: object) => product.call(method, path, body)

  /** Name, version and state of each flow that is not built in. */
  const flows = async () => {
    const page = (await call('GET', '/flows')).body as { flows: Listed[] }
    const own = page.flows.filter(({ built_in }) => !built_in)
    return own.map(({ name, version, state }) => `${name} ${version} ${state}`)
  }

  before(async function () {
    this.timeout(START_MS)
    await mkdir(join(dir.path, 'flows'))
    await start({
      'greet.yaml': flowFile('greet', 'Greet.'),
      'part.yml': flowFile('part', 'Part.'),
      'foreign.yaml': `tenant: t_other\n${flowFile('foreign', 'Foreign.')}`,
      'notes.txt': 'not a flow',
      'broken.yaml': 'name: [',
      'empty.yaml': '',
      'schema.yaml': 'name: schema\noutput_schema: { type: object }\n',
      'built-in.yaml': flowFile('summarize', 'Summarize.'),
      'twice.yaml': flowFile('greet', 'Greet again.'),
    })
  })

  after(async function () {
    this.timeout(START_MS)
    await product.close()
  })

  it('D1.3 FLOWS_DIR: its definitions are drafts of their tenant at the start, whichever gateway loads them, and other files are left out', async () => {
    for (let gateway = 0; gateway < 2; gateway++) {
      expect(await flows()).to.deep.equal(['greet 1 draft', 'part 1 draft'])
    }
    const { body } = await call('GET', '/flows/greet')
    expect(body).to.nested.include({ version: 1, 'definition.system_prompt_template': 'Greet.\n{{.memory}}\n' })
    expect(body).to.have.deep.nested.property('definition.output_schema', {
      type: 'object',
      required: ['answer'],
      properties: { answer: { type: 'string' } },
    })
    expect((await call('POST', '/flows/greet/run', REQUEST)).status).to.equal(404)
  })
})
