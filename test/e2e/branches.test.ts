import { expect } from 'chai'
import fc from 'fast-check'
import { useMongo } from '../support/mongo.ts'
import { inBothForms, type Product } from '../support/product.ts'
import { Page, type Wire } from './branches/page.ts'
import { actsOf, asRequest, play } from './branches/story.ts'

/** So many series of acts for each format, in each form. */
const STORIES = Number(process.env['STORIES'] ?? 8)

inBothForms('the branch that a page shows', (startProduct, form) => {
  const mongo = form === 'cluster' ? useMongo() : undefined
  let product: Product
  before(async () => {
    product = await startProduct({ DIALECTS: 'ui,ag-ui,openai', ...mongo?.env, ...(mongo && { DURABILITY: 'sessions' }) })
  })
  after(() => product.close())

  for (const wire of ['ui', 'ag-ui'] as const satisfies readonly Wire[])
    it(`D38: ${wire}: in ${STORIES} stories of edits, regenerations, branches, failures and refusals the model reads just what the page shows`, async () => {
      await fc.assert(
        fc.asyncProperty(actsOf(), async (acts) => {
          const page = new Page(product.url, wire)
          for (const { page: shown, model } of await play(page, acts, product))
            expect(model).to.deep.equal(asRequest(shown))
        }),
        { numRuns: STORIES, endOnFailure: true },
      )
    })
})
