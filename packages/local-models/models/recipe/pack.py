# Packs the sprites (128px RGBA WebP) and the concepts into data/.
import json,io,re,collections
from PIL import Image
C=json.load(open('concepts_full.json'))
out='data/'
idx=[];f=open(out+'sprites.bin','wb');off=0
for ci,c in enumerate(C):
    for st,p in c['files'].items():
        im=Image.open(p).convert('RGBA')
        if im.size!=(128,128): im=im.resize((128,128),Image.LANCZOS)
        b=io.BytesIO(); im.save(b,'WEBP',quality=88,alpha_quality=95,method=4); d=b.getvalue()
        f.write(d); idx.append((ci,st,off,len(d))); off+=len(d)
f.close(); print(len(idx),off/1e6,'MB')
for c in C: c.pop('files')
json.dump({'concepts':C,'index':idx},open(out+'concepts.json','w'))
