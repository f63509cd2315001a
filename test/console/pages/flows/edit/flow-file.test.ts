import { expect } from 'chai'
import { readFlowFile } from '../../../../../services/console/pages/flows/edit/flow-file.ts'
import { readDefinition } from '../../../../../shared/work/flows/definition.ts'
import { toYaml } from '../../../../../shared/work/flows/folder.ts'
import type { Flow } from '../../../../../shared/work/flows/port.ts'

const fileOf = (text: string, name = 'triage.yaml') => ({ name, size: text.length, text: async () => text })

describe('a flow in a file', () => {
  it('is after its export and import what it was, texts that look like other values too', async () => {
    const definition = readDefinition({
      input_schema: {
        type: 'object',
        properties: { yes: { enum: ['no', 'null', '1.0', '~', '2026-11-30', ' x ', '', '# a', 0.1, null, true] } },
        examples: [{ yes: 'no' }, { yes: null }],
      },
      output_schema: { type: 'object', properties: { ['__proto__']: { type: 'string' } } },
      system_prompt_template: 'One:\n  two\n\n\tthree  \n{{.memory}}\n',
      user_prompt_template: `${'long '.repeat(60)}: "quoted" 'x' \u202e \u{1f600} \r\n`,
      tools: ['Read'],
      sub_agents: [{ name: 'mood', prompt: '---\n- x: {y}', output_schema: { type: 'object' } }],
      evolve: true,
    })
    const read = await readFlowFile(fileOf(await toYaml({ name: 'triage', definition } as Flow)))
    expect(read.name).to.equal('triage')
    expect(readDefinition(read.definition)).to.deep.equal(definition)
  })

  it('may be JSON, has the name of the file when it has none, and is refused with the place where it is wrong', async () => {
    const { name, definition } = await readFlowFile(fileOf('{"tenant": "t", "input_schema": {}}', 'my.flow.json'))
    expect([name, definition]).to.deep.equal(['my.flow', { input_schema: {} }])
    const refusal = (text: string) => readFlowFile(fileOf(text)).then(String, ({ message }: Error) => message)
    expect(await refusal('a: b: c')).to.match(/^triage\.yaml is no YAML: .* at line 1, column 4/)
    for (const text of ['', '- a', 'text']) expect(await refusal(text), text).to.include('triage.yaml holds no flow')
    expect(await readFlowFile({ ...fileOf('a: 1'), size: 3e6 }).catch(String)).to.include('larger than 2 MB')
  })
})
