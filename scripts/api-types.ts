import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import openapiTS, { astToString } from 'openapi-typescript'

// Writes the types of openapi.yaml beside it, unless they are there already. Git ignores them. Run with `npm run api-types`.
const document = new URL('../shared/platform/api/openapi.yaml', import.meta.url)
const types = new URL('../shared/platform/api/openapi.d.ts', import.meta.url)

const stamp = `// Made of openapi.yaml by npm run api-types: ${createHash('sha256').update(readFileSync(document)).digest('hex')}\n`
if (!existsSync(types) || !readFileSync(types, 'utf8').startsWith(stamp)) {
  const nodes = await openapiTS(document, { defaultNonNullable: false, silent: true })
  writeFileSync(types, stamp + astToString(nodes))
}
