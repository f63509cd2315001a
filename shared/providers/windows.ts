import type { WindowOf } from './port.ts'
import { catalogueKey, openCatalogue } from './prices.ts'

/** The models' windows as the catalogue of prices tells them. What Ollama reads is its operator's choice, and told nowhere. */
export const createWindows = (): WindowOf => (type, model) => {
  if (type === 'demo' || type === 'ollama') return undefined
  return openCatalogue().calcPrice({}, model, catalogueKey(type))?.model.context_window
}
