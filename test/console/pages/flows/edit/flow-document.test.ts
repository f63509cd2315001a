import { expect } from 'chai'
import { FlowDocument } from '../../../../../services/console/pages/flows/edit/flow-document.ts'

const flowOf = (definition: object, version = 1) => ({ name: 'a', definition, version })

describe('the document of a flow that is edited', () => {
  it('is as saved when the server answers with the same values in another order', () => {
    const document = new FlowDocument(flowOf({ model: 'm', steps: [{ b: 1, a: 2 }] }))
    document.change(['output_schema'], { type: 'object' })
    expect(document.isChanged.value).to.equal(true)
    document.keep(flowOf({ output_schema: { type: 'object' }, steps: [{ a: 2, b: 1 }], model: 'm' }, 2))
    expect(document.isChanged.value).to.equal(false)
    expect(document.version.value).to.equal(2)
  })

  it('is changed by another value, another order of a list, and a text that is no JSON', () => {
    const document = new FlowDocument(flowOf({ tools: ['A', 'B'] }))
    for (const text of [
      '{"tools": ["B", "A"]}',
      '{"tools": {"0": "A", "1": "B"}}',
      '{"tools": ["A", "B"], "x": null}',
      '{"tools": ["A", "B"]',
    ]) {
      document.text.value = text
      expect(document.isChanged.value, text).to.equal(true)
    }
    document.text.value = '{ "tools" : ["A",\n"B"] }'
    expect(document.isChanged.value, 'blanks').to.equal(false)
  })
})
