import { render } from 'preact'
import { showTexts } from '../../base/show-texts.ts'
import { ClusterPage } from './cluster-page.tsx'
import '../../style/tokens.css'
import '../../style/base.css'
import '../../style/parts.css'
import '../../style/pages.css'

const root = document.querySelector('#cluster')
if (root === null) throw new Error('the page has no place for the cluster')
showTexts()
render(<ClusterPage />, root)
