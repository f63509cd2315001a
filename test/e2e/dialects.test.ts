import { randomBytes } from 'node:crypto'
import { useMongo } from '../support/mongo.ts'
import { inBothForms, type Product } from '../support/product.ts'
import { a2aTests } from './dialects/a2a.ts'
import { agUiTests } from './dialects/ag-ui.ts'
import { flowTests } from './dialects/flows.ts'
import { openaiTests } from './dialects/openai.ts'
import { openaiPythonTests } from './dialects/openai-python.ts'
import { manyChatsTest, UI_PACKAGES, uiTests } from './dialects/ui.ts'

/**
 * The packages that others use, unmodified, against both forms; a second package of the same wire against one of them. Many clients at a time meet
 * a cluster with OpenAI's package alone: whose answer is whose is decided in the gateway, and below it the relay is the same for all.
 */
inBothForms('dialects', (startProduct, form) => {
  const mongo = form === 'cluster' ? useMongo() : undefined
  let product: Product
  before(async () => {
    const demo = { MODEL: '', MODEL_PROVIDER: 'demo', MODEL_BASE_URL: '', MODEL_PRICES: '' }
    const flows = { MASTER_KEY: randomBytes(32).toString('base64'), ALLOW_PRIVATE_URLS: 'true' }
    product = await startProduct({ ...demo, ...flows, DIALECTS: 'ui,openai,ag-ui,a2a', ...mongo?.env })
  })
  after(() => product.close())

  describe('openai', () => openaiTests(() => product))
  if (form === 'standalone') describe('openai of PyPI', () => openaiPythonTests(() => product))
  describe('ag-ui', () => agUiTests(() => product, form))
  describe('a2a', () => a2aTests(() => product, form))
  const versions = form === 'standalone' ? UI_PACKAGES : { 7: UI_PACKAGES[7] }
  for (const [version, packages] of Object.entries(versions))
    describe(`ui, AI SDK ${version}`, () => uiTests(() => product, packages))
  if (form === 'standalone') describe('ui', () => manyChatsTest(() => product))
  describe('a flow as a model of openai', () => flowTests(() => product)) // The last one: it routes all prompts elsewhere.
})
