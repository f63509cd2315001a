import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { shippedPackages } from './shipped-packages.ts'

// Prints the packages of the image as CycloneDX 1.5, from package-lock.json. `npm sbom --omit dev` leaves out the packages that a development
// package needs as well (npm 11.19).

const root = resolve(import.meta.dirname, '..')
const { name, version } = JSON.parse(readFileSync(resolve(root, 'package.json'), 'utf8')) as Record<string, string>
const components = shippedPackages(root).map(({ name: own, version: at, licence, integrity }) => ({
  type: 'library',
  name: own,
  version: at,
  purl: `pkg:npm/${own.replace('@', '%40')}@${at}`,
  ...(licence && { licenses: [{ expression: licence }] }),
  ...(integrity?.startsWith('sha512-') && {
    hashes: [{ alg: 'SHA-512', content: Buffer.from(integrity.slice('sha512-'.length), 'base64').toString('hex') }],
  }),
}))
const unique = [...new Map(components.map((component) => [component.purl, component])).values()]
const bom = {
  $schema: 'http://cyclonedx.org/schema/bom-1.5.schema.json',
  bomFormat: 'CycloneDX',
  specVersion: '1.5',
  version: 1,
  metadata: { component: { type: 'application', name, version, licenses: [{ license: { name: 'Proprietary' } }] } },
  components: unique,
}
process.stdout.write(`${JSON.stringify(bom, null, 2)}\n`)
