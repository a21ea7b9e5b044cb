"""The page's program: draws the data of the page. Every text enters as text, never as markup."""

SCRIPT = r"""
'use strict';
const D=JSON.parse(document.getElementById('data').textContent),$=id=>document.getElementById(id);
const make=(tag,cls,text)=>{const e=document.createElement(tag);if(cls)e.className=cls;
 if(text!==undefined)e.textContent=text;return e};
const S={at:0,fn:'',query:'',split:true,all:false,wrap:true,open:new Set(),full:new Set(),hunk:-1};
const width=n=>D.texts[n].length,lineOf=(n,i)=>D.lines[D.texts[n][i]];

/* ---- what a stage has ---- */
const only=name=>!S.fn||name===S.fn;
const changesOf=s=>D.stages[s].changes.filter(c=>only(c[0]));
const matters=s=>s===0||changesOf(s).length>0||D.stages[s].log!==''||(S.query!==''&&hits(s)>0);
const steps=(a,b)=>a<0?[['insert',0,0,0,width(b)]]:b<0?[['delete',0,width(a),0,0]]:
 a===b?[['equal',0,width(a),0,width(b)]]:D.diffs[a+'-'+b];
const counts=s=>{let plus=0,minus=0;for(const c of changesOf(s))for(const o of steps(c[1],c[2]))
 if(o[0]!=='equal'){minus+=o[2]-o[1];plus+=o[4]-o[3]}return [plus,minus]};
let lineHit=new Map();
const isHit=id=>{if(!lineHit.has(id))lineHit.set(id,D.lines[id].toLowerCase().includes(S.query));
 return lineHit.get(id)};
const textHits=n=>n<0||S.query===''?0:D.texts[n].reduce((sum,id)=>sum+isHit(id),0);
const hits=s=>D.stages[s].functions.filter(f=>only(f[0])).reduce((sum,f)=>sum+textHits(f[1]),0);
const startOf=(s,name)=>{let n=1;if(s<0)return n;for(const f of D.stages[s].functions){if(f[0]===name)break;
 n+=width(f[1])}return n};

/* ---- one line ---- */
const WORDS=('def class return for while in if elif else with pass import from as and or not True False None self '+
 'lambda break continue').replaceAll(' ','|');
const TOKEN=new RegExp('(#.*$)|("(?:[^"\\\\]|\\\\.)*"|\'(?:[^\'\\\\]|\\\\.)*\')|\\b('+WORDS+
 ')\\b|(\\bpl(?:d)?(?:\\.\\w+)+)|(\\b\\d[\\w.]*)|(@[\\w.]+)','g');
const KINDS=['','comment','string','word','op','number','deco'];
const ODD=/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
const shown=text=>text.replace(ODD,c=>'\\u'+c.charCodeAt(0).toString(16).padStart(4,'0'));
function colours(text){const out=[];let last=0;for(const m of text.matchAll(TOKEN)){
 if(m.index>last)out.push([last,m.index,'']);
 const kind=KINDS[m.slice(1).findIndex(x=>x!==undefined)+1];
 out.push([m.index,m.index+m[0].length,kind]);last=m.index+m[0].length}
 if(last<text.length)out.push([last,text.length,'']);return out}
function found(text){const out=[];if(S.query==='')return out;const low=text.toLowerCase();
 for(let i=low.indexOf(S.query);i>=0;i=low.indexOf(S.query,i+S.query.length))out.push([i,i+S.query.length]);return out}
function code(text,mark){const cell=make('code'),marks=found(text),cuts=new Set([0,text.length]);
 const parts=colours(text);parts.forEach(p=>cuts.add(p[0]));marks.forEach(m=>{cuts.add(m[0]);cuts.add(m[1])});
 if(mark){cuts.add(mark[0]);cuts.add(mark[1])}
 const at=[...cuts].sort((a,b)=>a-b);let p=0;
 for(let i=0;i+1<at.length;i++){while(parts[p]&&parts[p][1]<=at[i])p++;
  const cls=[parts[p]?parts[p][2]:'',mark&&mark[0]<=at[i]&&at[i]<mark[1]?'mark':'',
   marks.some(m=>m[0]<=at[i]&&at[i]<m[1])?'hit':''].filter(x=>x).join(' ');
  const piece=shown(text.slice(at[i],at[i+1]));
  cell.append(cls?make('span',cls,piece):document.createTextNode(piece))}
 return cell}
/* the differing middle of two lines, whole words */
function middle(a,b){const x=a.split(/(\W)/),y=b.split(/(\W)/);let f=0,l=0;
 while(f<Math.min(x.length,y.length)&&x[f]===y[f])f++;
 while(l<Math.min(x.length,y.length)-f&&x[x.length-1-l]===y[y.length-1-l])l++;
 const len=(w,n)=>w.slice(0,n).join('').length,same=len(x,f)+(l?x.slice(-l).join('').length:0);
 if(same*3<a.trimStart().length)return [null,null]; // hardly anything in common
 return [[len(x,f),len(x,x.length-l)],[len(y,f),len(y,y.length-l)]]}

/* ---- a diff ---- */
function row(parent,kind,a,b){const tr=make('tr',kind);tr.append(...a,...b);parent.append(tr);return tr}
const half=(n,text,kind,mark)=>[make('td','n',n),(()=>{const td=make('td','c '+kind);
 if(text!==null)td.append(code(text,mark));return td})()];
/* a function that is new, gone or equal has one side */
const twoSides=(a,b)=>S.split&&a>=0&&b>=0&&a!==b;
const blank=()=>[make('td','n'),make('td','c none')];
function draw(table,op,a,b,fromA,fromB,range,begins){
 const [tag,a1,a2,b1,b2]=op,[lo,hi]=range,two=twoSides(a,b);
 if(tag==='equal'){for(let i=lo;i<hi;i++){const text=lineOf(b,b1+i),n=fromB+b1+i,m=fromA+a1+i;
   if(two)row(table,'same',half(m,text,''),half(n,text,''));
   else row(table,'same',[make('td','n',m)],half(n,text,''))}return}
 const h=make('tbody',begins?'hunk':'');table.parentNode.append(h);
 const pairs=tag==='replace'?Math.min(a2-a1,b2-b1):0,marks=[];
 for(let i=0;i<pairs;i++)marks.push(middle(lineOf(a,a1+i),lineOf(b,b1+i)));
 const left=i=>half(fromA+a1+i,lineOf(a,a1+i),'del',marks[i]&&marks[i][0]);
 const right=i=>half(fromB+b1+i,lineOf(b,b1+i),'add',marks[i]&&marks[i][1]);
 if(two){for(let i=0;i<Math.max(a2-a1,b2-b1);i++)row(h,'',i<a2-a1?left(i):blank(),i<b2-b1?right(i):blank())}
 else{for(let i=0;i<a2-a1;i++){const [n,c]=left(i);row(h,'',[n,make('td','n')],[c])}
  for(let i=0;i<b2-b1;i++)row(h,'',[make('td','n')],right(i))}}
function diff(name,a,b,s,whole){const table=make('table','diff'+(twoSides(a,b)?' two':'')+(S.wrap?' wrap':''));
 const fresh=()=>{const t=make('tbody');table.append(t);return t};
 const ops=steps(a,b),fromA=startOf(s-1,name),fromB=startOf(s,name);
 ops.forEach((op,i)=>{let body=fresh();
  if(op[0]!=='equal'){draw(body,op,a,b,fromA,fromB,[0,0],i===0||ops[i-1][0]==='equal');return}
  const n=op[4]-op[3],head=i===0?0:D.context,tail=i===ops.length-1?0:D.context;
  if(whole||n<=head+tail+1){draw(body,op,a,b,fromA,fromB,[0,n]);return}
  draw(body,op,a,b,fromA,fromB,[0,head]);
  const gap=fresh(),td=make('td','gap',(n-head-tail)+' equal lines');td.colSpan=4;
  const tr=make('tr');tr.append(td);gap.append(tr);
  td.onclick=()=>{gap.replaceChildren();draw(gap,op,a,b,fromA,fromB,[head,n-tail])};
  body=fresh();draw(body,op,a,b,fromA,fromB,[n-tail,n])});
 return table}

/* ---- the stage ---- */
function card(s,name,a,b){const box=make('details','card'),head=make('summary'),same=a===b;
 const what=same?'unchanged':a<0?'new':b<0?'removed':'changed';
 head.append(make('b','',shown(name)),make('span','tag '+what,what));
 const n=textHits(b);if(n)head.append(make('span','tag hits',n+' found'));
 box.append(head);
 const key=D.stages[s].name+'/'+name,whole=same||S.full.has(key)||n>0;
 if(!same&&a>=0&&b>=0){const more=make('button','',S.full.has(key)?'changes only':'whole function');
  more.onclick=e=>{e.preventDefault();S.full.has(key)?S.full.delete(key):S.full.add(key);stage()};head.append(more)}
 const fill=()=>{if(box.children.length===1){const scroll=make('div','scroll');
  scroll.append(diff(name,same&&s===0?b:a,b,s,whole));box.append(scroll)}};
 box.addEventListener('toggle',()=>{if(box.open)fill()});
 if(!same||n>0||s===0){box.open=true;fill()}
 return box}
function stage(){const s=S.at,it=D.stages[s],main=$('main');main.replaceChildren();S.hunk=-1;
 const h=make('h2','',shown(it.name));main.append(h);
 if(s>0)main.append(make('p','note','compared with '+D.stages[s-1].name));
 if(it.log){const log=make('pre','log',shown(it.log));main.append(make('h3','','Diagnostics'),log)}
 const parts=s===0?it.functions.map(f=>[f[0],f[1],f[1]]):it.changes;
 const rest=s===0?[]:it.functions.filter(f=>!it.changes.some(c=>c[0]===f[0])).map(f=>[f[0],f[1],f[1]]);
 const visible=list=>list.filter(c=>only(c[0]));
 if(s>0&&!visible(parts).length)main.append(make('p','note','nothing changed'+(S.fn?' in '+S.fn:'')));
 for(const [name,a,b] of [...visible(parts),...visible(rest)])main.append(card(s,name,a,b));
 if(s===0)for(const [name,text] of D.notes)main.append(make('h3','',shown(name)),make('pre','log',shown(text)));
 const kept=decodeURIComponent(location.hash.slice(1));
 if(kept!==it.name)history.replaceState(null,'','#'+encodeURIComponent(it.name))}

/* ---- the list of passes ---- */
function entry(s){const it=D.stages[s],li=make('li',s===S.at?'here':''),[plus,minus]=s?counts(s):[0,0];
 li.append(make('span','name',shown(it.name)));
 if(it.log)li.append(make('span','tag warn','log'));
 if(s&&plus+minus)li.append(make('span','plus','+'+plus),make('span','minus','\u2212'+minus));
 const n=S.query===''?0:hits(s);if(n)li.append(make('span','tag hits',n));
 li.onclick=()=>go(s);return li}
function list(){const ul=$('passes');ul.replaceChildren();let s=0;
 while(s<D.stages.length){if(matters(s)||S.all){ul.append(entry(s));s++;continue}
  let e=s;while(e<D.stages.length&&!matters(e))e++;
  const from=s,to=e,inside=from<=S.at&&S.at<to;
  if(S.open.has(from)||inside){for(let i=from;i<to;i++)ul.append(entry(i))}
  else{const li=make('li','fold',(to-from)+' unchanged');li.title=D.stages.slice(from,to).map(x=>x.name).join('\n');
   li.onclick=()=>{S.open.add(from);list()};ul.append(li)}
  s=e}
 const here=ul.querySelector('.here');if(here)here.scrollIntoView({block:'nearest'})}
function go(s,last){S.at=s;list();stage();const h=[...document.querySelectorAll('.hunk')];
 if(last&&h.length)jump(h,h.length-1);else $('main').scrollTop=0}
function jump(h,i){h.forEach(x=>x.classList.remove('now'));S.hunk=i;h[i].classList.add('now');
 h[i].scrollIntoView({block:'center'})}
/* places that were found come first while there is a search */
const places=()=>{if(S.query==='')return [...document.querySelectorAll('.hunk')];
 return [...new Set([...document.querySelectorAll('.hit')].map(x=>x.closest('tr')))]};
function next(way){const h=places(),i=S.hunk+way;
 if(0<=i&&i<h.length&&(S.hunk>=0||way>0)){jump(h,i);return}
 const wanted=s=>S.query===''?s>0&&changesOf(s).length>0:hits(s)>0;
 for(let s=S.at+way;0<=s&&s<D.stages.length;s+=way)if(wanted(s)){go(s);const p=places();
  if(p.length)jump(p,way>0?0:p.length-1);return}}
function step(way){for(let s=S.at+way;0<=s&&s<D.stages.length;s+=way)if(matters(s)||S.all){go(s);return}}

/* ---- controls ---- */
const names=[...new Set(D.stages.flatMap(s=>s.functions.map(f=>f[0])))];
for(const name of names){const o=make('option','',shown(name));o.value=name;$('fn').append(o)}
const again=()=>{lineHit=new Map();list();stage()};
$('fn').onchange=e=>{S.fn=e.target.value;again()};
$('search').oninput=e=>{S.query=e.target.value.toLowerCase();again()};
$('search').onkeydown=e=>{if(e.key==='Enter'){e.preventDefault();next(e.shiftKey?-1:1)}};
const toggle=(id,key)=>{$(id).checked=S[key];$(id).onchange=e=>{S[key]=e.target.checked;again()}};
toggle('split','split');toggle('all','all');toggle('wrap','wrap');
$('next').onclick=()=>next(1);$('prev').onclick=()=>next(-1);
document.addEventListener('keydown',e=>{if(/^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName)||e.ctrlKey||e.metaKey||e.altKey)return;
 const act={n:()=>next(1),p:()=>next(-1),j:()=>step(1),k:()=>step(-1),'/':()=>$('search').focus()}[e.key];
 if(act){e.preventDefault();act()}});
const fromHash=()=>{const want=decodeURIComponent(location.hash.slice(1));return D.stages.findIndex(s=>s.name===want)};
addEventListener('hashchange',()=>{const s=fromHash();if(s>=0&&s!==S.at)go(s)});
const first=fromHash();
go(first>=0?first:Math.max(0,D.stages.findIndex((s,i)=>i>0&&s.changes.length>0)));
"""
