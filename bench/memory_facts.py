"""The labelled set of `bench.memory_retrieval`: facts, and queries with the fact that answers each.

Where the paraphrases come from: every rule of the linter ruff, which ships them as JSON, says in one
paragraph what it checks and in another, in other words, why that is bad. The first sentence of the
one is the fact, with the rule's name and code; the first sentences of the other are the query. Chinese
and Japanese pairs are written by hand; the rest of the facts are made, to be in the way.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

SEED = 11
FACTS = 2_000
PARAPHRASED, IDENTIFIERS, MISSPELT = 90, 30, 30

# fact, question about it in other words
CHINESE = [
    ("安娜希望冲突的字段并排显示", "数据不一致的时候怎么展示给安娜看"),
    ("财务部门每个月最后一个工作日关账", "月底财务什么时候结账"),
    ("王伟负责客户主数据的审批", "客户数据由谁批准"),
    ("供应商名称一律使用营业执照上的全称", "供应商的名字应该怎么写"),
    ("上海仓库的库存数据有两个小时的延迟", "上海库存信息是实时的吗"),
    ("电话号码必须带国家代码保存", "存储电话要用什么格式"),
    ("旧的订单系统将在明年三月停用", "老订单系统还能用多久"),
    ("李娜更喜欢简短的表格而不是长篇文字", "给李娜的报告用什么形式"),
    ("折扣超过百分之十需要销售总监签字", "打折多少要总监同意"),
    ("邮政编码为空的地址不允许自动合并", "没有邮编的地址可以合并吗"),
    ("周末不要运行批量导入任务", "星期六能跑批量导入吗"),
    ("重复的客户记录保留创建时间最早的一条", "客户重复时留下哪一条"),
    ("北京办公室使用另一套成本中心编码", "北京的成本中心编码有什么不同"),
    ("发票金额以不含税价格为准", "发票上的金额含税吗"),
    ("所有日期按照年月日的顺序书写", "日期应该用什么顺序"),
    ("测试环境的数据每天晚上被清空", "测试数据会保留到第二天吗"),
    ("张敏从六月起休产假由刘洋代替", "张敏不在的时候找谁"),
    ("合同到期前六十天要提醒客户经理", "合同快到期时提前多久通知"),
    ("物料编号的前两位表示产品线", "怎么从物料编号看出产品线"),
    ("海关编码由外部服务商维护", "海关编码谁来更新"),
    ("退货地址不能使用邮政信箱", "退货可以寄到邮政信箱吗"),
    ("客户投诉要在二十四小时内回复", "收到投诉多久要答复"),
    ("汇率取自欧洲央行的每日公布", "汇率数据来源是什么"),
    ("经销商的信用额度每季度重新评估", "多久检查一次经销商信用"),
    ("个人身份证号不得出现在报告里", "报告中可以写身份证号吗"),
]
JAPANESE = [
    ("田中さんは競合する項目を並べて表示してほしい", "矛盾したデータを田中さんにどう見せるか"),
    ("経理部は毎月最終営業日に締め処理を行う", "月末の締めはいつですか"),
    ("取引先マスタの承認者は佐藤さんです", "取引先の登録は誰が承認しますか"),
    ("会社名は登記簿の正式名称で登録する", "会社の名前はどの表記で入れるべきか"),
    ("大阪倉庫の在庫は二時間遅れて反映される", "大阪の在庫はリアルタイムですか"),
    ("電話番号は国番号を付けて保存する", "電話番号の保存形式を教えて"),
    ("旧受注システムは来年三月に停止する", "古い受注システムはいつまで使えますか"),
    ("鈴木さんは長い文章より短い表を好む", "鈴木さん向けの資料の形式は"),
    ("一割を超える値引きは営業部長の承認が必要", "値引きは何割から部長の許可がいるか"),
    ("郵便番号がない住所は自動で統合しない", "郵便番号なしの住所をまとめてよいか"),
    ("週末に一括取り込みを実行しないこと", "土曜日に一括取り込みを流していいか"),
    ("顧客が重複したら最も古い記録を残す", "重複した顧客はどれを残しますか"),
    ("福岡支店は別の原価センタ番号を使う", "福岡の原価センタはどう違うか"),
    ("請求金額は税抜きで管理する", "請求金額は税込みですか"),
    ("日付は年月日の順に書く", "日付の書き方の順番は"),
    ("検証環境のデータは毎晩消去される", "検証環境のデータは翌日も残るか"),
    ("高橋さんは六月から育児休業で代わりは伊藤さん", "高橋さんの不在中は誰に聞けばよいか"),
    ("契約満了の六十日前に担当者へ通知する", "契約が切れる何日前に知らせるか"),
    ("品目番号の先頭二桁は製品群を表す", "品目番号から製品群を知るには"),
    ("関税分類番号は外部業者が管理している", "関税分類を更新するのは誰"),
    ("返品先に私書箱は使えない", "返品を私書箱に送れますか"),
    ("苦情には二十四時間以内に返答する", "クレームへの回答期限は"),
    ("為替レートは欧州中央銀行の公表値を使う", "為替レートの出典はどこか"),
    ("代理店の与信枠は四半期ごとに見直す", "代理店の与信はどのくらいの頻度で見直すか"),
    ("個人番号を報告書に載せてはならない", "報告書に個人番号を書いてもよいか"),
]


@dataclass(frozen=True, slots=True)
class Query:
    group: str
    text: str
    answer: int
    """The number of the fact."""


def labelled() -> tuple[list[str], list[Query]]:
    """The facts, in an order that says nothing, and the queries."""
    rng = random.Random(SEED)
    pairs: list[tuple[str, str, str]] = []  # group, fact, query
    pairs += [("Chinese", fact, query) for fact, query in CHINESE]
    pairs += [("Japanese", fact, query) for fact, query in JAPANESE]
    rules = _rules()
    rng.shuffle(rules)
    named = rules[PARAPHRASED : PARAPHRASED + IDENTIFIERS]
    slipped = rules[PARAPHRASED + IDENTIFIERS : PARAPHRASED + IDENTIFIERS + MISSPELT]
    pairs += [("paraphrase", fact, why) for _, _, fact, why in rules[:PARAPHRASED]]
    for n, (code, name, fact, _) in enumerate(named):
        asked = (f"what does {code} check", name, f"turn off {name.replace('-', '_')} ({code})")
        pairs.append(("identifier", fact, asked[n % 3]))
    pairs += [("misspelt", fact, _misspelt(_key_words(fact), rng)) for _, _, fact, _ in slipped]
    rest = [fact for _, _, fact, _ in rules[PARAPHRASED + IDENTIFIERS + MISSPELT :]]
    facts = [fact for _, fact, _ in pairs] + rest
    facts += _in_the_way(FACTS - len(facts), rng)
    order = list(range(len(facts)))
    rng.shuffle(order)
    place = {old: new for new, old in enumerate(order)}
    queries = [Query(group, query, place[n]) for n, (group, _, query) in enumerate(pairs)]
    return [facts[old] for old in order], queries


def _rules() -> list[tuple[str, str, str, str]]:
    ruff = Path(sys.executable).with_name("ruff")
    command = [str(ruff) if ruff.exists() else "ruff", "rule", "--all", "--output-format", "json"]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    found, seen = [], set()
    for rule in json.loads(told.stdout):
        parts = re.split(r"^## (.+)$", rule["explanation"] or "", flags=re.MULTILINE)
        by_title = dict(zip(parts[1::2], parts[2::2], strict=False))
        what = _sentences(by_title.get("What it does", ""), 1)
        why = _sentences(by_title.get("Why is this bad?", ""), 2)
        if len(what) > 30 and len(why) > 40 and what not in seen:
            seen.add(what)
            fact = f"{rule['code']} {rule['name']}: {what}"
            found.append((rule["code"], rule["name"], fact, why))
    return found


def _sentences(text: str, count: int) -> str:
    paragraph = " ".join(text.strip().split("\n\n")[0].split())
    return " ".join(re.split(r"(?<=[.!?]) ", paragraph)[:count])[:300]


def _key_words(fact: str) -> str:
    words = re.findall(r"[a-z]{5,}", fact.split(": ", 1)[1])
    return " ".join(sorted(dict.fromkeys(words), key=len, reverse=True)[:4])


def _misspelt(words: str, rng: random.Random) -> str:
    def slip(word: str) -> str:
        at = rng.randrange(1, len(word) - 2)
        return rng.choice(
            (
                word[:at] + word[at + 1] + word[at] + word[at + 2 :],
                word[:at] + word[at + 1 :],
                word[:at] + word[at] + word[at:],
            )
        )

    return " ".join(map(slip, words.split()))


def _in_the_way(count: int, rng: random.Random) -> list[str]:
    """Facts of the same fields in three languages, each with an identifier of its own."""
    zh = ("系统{}的{}数据每{}小时同步一次", ["客户", "订单", "库存", "发票", "合同", "地址"])
    ja = (
        "システム{}の{}データは{}時間ごとに同期する",
        ["顧客", "受注", "在庫", "請求", "契約", "住所"],
    )
    en = (
        "Source {} delivers {} records every {} hours",
        ["customer", "order", "stock", "invoice", "contract", "address"],
    )
    made = []
    for n in range(count):
        form, fields = (zh, ja, en, en)[n % 4]
        made.append(form.format(f"SRC-{4000 + n}", rng.choice(fields), rng.randint(2, 72)))
    return made
