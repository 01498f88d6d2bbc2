import { render } from 'preact'
import { Empty } from '../shared/parts.tsx'

const root = document.getElementById('app')
if (root) render(<Empty title="Weir" />, root)
