import { render } from 'preact'
import { showHiddenText } from '../../base/show-hidden-text.ts'
import { ClusterPage } from './cluster-page.tsx'
import '../../style/tokens.css'
import '../../style/base.css'
import '../../style/parts.css'

const root = document.querySelector('#cluster')
if (root === null) throw new Error('the page has no place for the cluster')
showHiddenText()
render(<ClusterPage />, root)
