import { render } from 'preact'
import { watchAddress } from './base/router.ts'
import { Console } from './shell/console.tsx'
import { watchSignOut } from './sign-in/session.ts'
import { startSignIn } from './sign-in/start.ts'
import './style/tokens.css'
import './style/base.css'
import './style/parts.css'

const root = document.querySelector('#console')
if (root === null) throw new Error('the page has no place for the console')
watchAddress()
watchSignOut()
// Pages have the same code: it is no part of the shell.
const loadReading = async () => (await import('./base/show-texts.ts')).showTexts()
void Promise.all([startSignIn(), loadReading()]).then(() => {
  root.replaceChildren()
  render(<Console />, root)
})
