import { resolve } from 'node:path'
import { shippedPackages } from './shipped-packages.ts'

// Lists the licences of the packages of the image, from package-lock.json. The exit code is 1 when one of them is not in
// `ACCEPTED`. Argument: the folder of the lock file, by default the project's.

/** Licences that allow use in a service without publishing its source. */
const ACCEPTED = new Set([
  '0BSD',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'ISC',
  'MIT',
  'PSF-2.0',
  'Unlicense',
])

/** Packages whose package.json does not name the licence in the usual field; it was read in their files. */
const READ: Readonly<Record<string, string>> = {
  'busboy@1.6.0': 'MIT',
  'limiter@1.1.5': 'MIT',
  'streamsearch@1.1.0': 'MIT',
}

const root = process.argv[2] ?? resolve(import.meta.dirname, '..')
const shipped = shippedPackages(root).map(({ name, version, licence }) => {
  const full = `${name}@${version}`
  return { name: full, licence: licence ?? READ[full] ?? 'none' }
})
const refused = shipped.filter(({ licence }) => !isAccepted(licence))

for (const [licence, found] of [...Map.groupBy(shipped, (each) => each.licence)].toSorted())
  console.log(`${licence}: ${found.map(({ name }) => name).join(', ')}`)
for (const { name, licence } of refused)
  console.error(`${name} has the licence ${licence}: look at it, and replace it or accept it`)
process.exitCode = refused.length > 0 ? 1 : 0

/** `MIT OR GPL-2.0` leaves the choice; `MIT AND BSD-3-Clause` does not. */
function isAccepted(licence: string): boolean {
  const choices = licence.replaceAll(/[()]/g, '').split(' OR ')
  return choices.some((choice) => choice.split(' AND ').every((each) => ACCEPTED.has(each)))
}
