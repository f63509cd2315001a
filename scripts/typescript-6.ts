import { registerHooks } from 'node:module'

// For `node --import`: takes the place of `typescript`, with which openapi-typescript writes. TypeScript 7 has no such API any more.
export { ts as default } from '@ts-morph/common'

registerHooks({
  resolve: (specifier, context, next) =>
    specifier === 'typescript' ? { url: import.meta.url, shortCircuit: true } : next(specifier, context),
})
